// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/token_lines.h"

#include <QtTest>

namespace vitrine::ui {

namespace {

QStringList linesOf(const std::vector<std::string>& tokens, int columns) {
    std::vector<TokenCell> cells;
    for (const std::string& bytes : tokens) {
        cells.push_back({bytes, false});
    }
    QStringList out;
    const TokenLines laidOut(cells, columns);
    for (const TokenLine& line : laidOut.lines()) {
        QString text;
        for (const TokenPiece& piece : line.pieces) {
            text += piece.text;
        }
        out << text;
    }
    return out;
}

} // namespace

class TokenLinesTest final : public QObject {
    Q_OBJECT

private slots:
    void glyphsShowWhatCannotBeSeen() {
        QCOMPARE(tokenGlyphs(" a\n"), QStringLiteral("·a↵"));
        QCOMPARE(tokenGlyphs("\t\r\n"), QStringLiteral("⇥‹0D›↵"));
        QCOMPARE(tokenGlyphs("\xE2\x80"), QStringLiteral("‹E2 80›"));
        QCOMPARE(tokenGlyphs("a\xF0\x9F\x98\x80"), QStringLiteral("a\U0001F600"));
        QCOMPARE(tokenGlyphs("a\xFFz"), QStringLiteral("a‹FF›z"));
    }
    void tokensAreNotBrokenOverLines() {
        QCOMPARE(linesOf({"abc", "def", "gh"}, 7), (QStringList{QStringLiteral("abcdef"), QStringLiteral("gh")}));
    }
    void aTokenLongerThanALineIsBroken() {
        QCOMPARE(linesOf({"a", "bcdefgh", "i"}, 4),
                 (QStringList{QStringLiteral("a"), QStringLiteral("bcde"), QStringLiteral("fghi")}));
    }
    void lineBreaksEndLines() {
        QCOMPARE(linesOf({"a\n", "b\r\n", "\n"}, 20),
                 (QStringList{QStringLiteral("a↵"), QStringLiteral("b‹0D›↵"), QStringLiteral("↵")}));
    }
    void wideCharactersTakeTwoColumns() {
        QCOMPARE(columnsOf(QStringLiteral("東京")), 4);
        QCOMPARE(columnsOf(QStringLiteral("e\u0301")), 1);
        QCOMPARE(linesOf({"東京", "a"}, 4), (QStringList{QStringLiteral("東京"), QStringLiteral("a")}));
    }
    void messagesBeginLines() {
        const TokenLines laidOut({{"a", true}, {"b", false}, {"c", true}}, 10);
        QCOMPARE(laidOut.lines().size(), std::size_t{2});
        QCOMPARE(laidOut.lines()[1].first, 2);
        QCOMPARE(laidOut.lineOf(1), std::size_t{0});
        QCOMPARE(laidOut.lineOf(2), std::size_t{1});
    }
    void theLineOfALongTokenIsItsFirst() {
        const TokenLines laidOut({{"abcdefghij", false}, {"k", false}}, 4);
        QCOMPARE(laidOut.lineOf(0), std::size_t{0});
        QCOMPARE(laidOut.lineOf(1), std::size_t{2});
    }
};

} // namespace vitrine::ui

QTEST_GUILESS_MAIN(vitrine::ui::TokenLinesTest)
#include "token_lines_test.moc"
