// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The editor of attention programs and its colours, number sliders and rows of facts.
#include "ui/widgets/forms/code_edit.h"

#include <QLineEdit>
#include <QSignalSpy>
#include <QSlider>
#include <QTest>
#include <QTextBlock>
#include <QTextLayout>

#include "tests/ui/models/common/patience.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/forms/code_colors.h"
#include "ui/widgets/forms/number_slider.h"
#include "ui/widgets/plots/fact_rows.h"

using namespace vitrine::ui;

class CodeEditTest final : public QObject {
    Q_OBJECT

    static QColor colorAt(const CodeEdit& edit, int line, int column) {
        const QTextBlock block = edit.document()->findBlockByNumber(line - 1);
        for (const QTextLayout::FormatRange& range : block.layout()->formats()) {
            if (column >= range.start && column < range.start + range.length) {
                return range.format.foreground().color();
            }
        }
        return themeTokens().text1;
    }

private slots:
    void initTestCase() {
        Theme::instance().install();
        Theme::instance().setMode(Theme::Mode::Dark);
    }

    void piecesOfTheLanguage() {
        const QString text = QStringLiteral("def f(x):  # ä\n    return torch.abs(x) + 12 if \"ö\" else '''a\nb'''\n");
        QStringList found;
        for (const CodePiece& piece : codePieces(text)) {
            found << text.mid(piece.begin, piece.end - piece.begin);
        }
        QCOMPARE(found,
                 (QStringList{"def", "f", "# ä", "return", "torch", "abs", "12", "if", "\"ö\"", "else", "'''a\nb'''"}));
    }

    void coloursFollowTheText() {
        CodeEdit edit;
        edit.setText("def f(x):\n    return 1\n");
        QCOMPARE(colorAt(edit, 1, 0), themeTokens().sets.at(QStringLiteral("syntax.keyword")));
        QCOMPARE(colorAt(edit, 1, 4), themeTokens().accent);
        QCOMPARE(colorAt(edit, 2, 11), themeTokens().warn);
        // A string that opens above colours the lines below.
        QTextCursor cursor(edit.document());
        cursor.insertText(QStringLiteral("'''"));
        QCOMPARE(colorAt(edit, 2, 11), themeTokens().bad); // it has no end
        cursor.movePosition(QTextCursor::End);
        cursor.insertText(QStringLiteral("'''"));
        QTRY_COMPARE(colorAt(edit, 2, 11), themeTokens().good);
        edit.undo();
        edit.undo();
        QTRY_COMPARE(colorAt(edit, 2, 11), themeTokens().warn);
    }

    void keysIndent() {
        CodeEdit edit;
        QSignalSpy edited(&edit, &CodeEdit::edited);
        edit.setText("def f(x):");
        QCOMPARE(edited.size(), 0);
        edit.moveCursor(QTextCursor::End);
        QTest::keyClick(&edit, Qt::Key_Return);
        QTest::keyClicks(&edit, QStringLiteral("y"));
        QTest::keyClick(&edit, Qt::Key_Tab);
        QCOMPARE(edit.text(), std::string("def f(x):\n    y   "));
        QTest::keyClick(&edit, Qt::Key_Backtab);
        QCOMPARE(edit.text(), std::string("def f(x):\ny   "));
        QVERIFY(edited.size() >= 3);
        edit.setText("other");
        edit.undo();
        QCOMPARE(edit.text(), std::string("def f(x):\ny   "));
    }

    void marksOfErrorsAndLines() {
        CodeEdit edit;
        edit.setText("a = 1\nb = 2\n");
        edit.setProblem(6, 7);
        edit.setTintedLine(1, true);
        QCOMPARE(edit.extraSelections().size(), 2);
        QCOMPARE(edit.extraSelections()[1].format.underlineStyle(), QTextCharFormat::WaveUnderline);
        QCOMPARE(edit.extraSelections()[1].cursor.selectedText(), QStringLiteral("b"));
        edit.setProblem(12, 12); // after the end: its neighbour
        QCOMPARE(edit.extraSelections().size(), 2);
        edit.setProblem(0, 0);
        edit.setTintedLine(99, true);
        QCOMPARE(edit.extraSelections().size(), 0);
        edit.resize(300, 200);
        QVERIFY(!edit.grab().isNull());
    }

    void slidersAndFields() {
        NumberSlider number(QStringLiteral("WINDOW"), true);
        number.setValue(2048, 0, 4096);
        QCOMPARE(number.slider()->value(), 500);
        QCOMPARE(number.field()->text(), QStringLiteral("2,048"));
        QSignalSpy moved(&number, &NumberSlider::moved);
        number.slider()->setValue(250);
        QCOMPARE(moved.size(), 1);
        QCOMPARE(moved[0][0].toDouble(), 1024.0);
        number.field()->setText(QStringLiteral("9,000"));
        emit number.field()->editingFinished();
        QCOMPARE(moved[1][0].toDouble(), 9000.0);
        QCOMPARE(number.slider()->value(), 1000);
        number.field()->setText(QStringLiteral("many"));
        emit number.field()->editingFinished();
        QCOMPARE(moved.size(), 2);
        QCOMPARE(number.field()->text(), QStringLiteral("9,000"));
    }

    void rowsAreChosenByKeys() {
        FactRows rows(QStringLiteral("Block size"));
        FactRow row;
        row.name = QStringLiteral("32");
        row.values = {{QStringLiteral("7.02 %")}, {QStringLiteral("25.4 KiB")}};
        row.share = 0.5;
        rows.setRows({row, row}, {60, 60}, 40);
        rows.resize(300, rows.sizeHint().height());
        QCOMPARE(rows.sizeHint().height(), 48);
        QSignalSpy clicked(&rows, &ItemPlot::itemClicked);
        QTest::keyClick(&rows, Qt::Key_Down);
        QTest::keyClick(&rows, Qt::Key_Down);
        QTest::keyClick(&rows, Qt::Key_Return);
        QCOMPARE(clicked.size(), 1);
        QCOMPARE(clicked[0][0].toInt(), 1);
        QCOMPARE(rows.spoken(), QStringLiteral("32  7.02 %  25.4 KiB"));
        rows.setRows({}, {}, 0);
        QCOMPARE(rows.currentItem(), -1);
        QVERIFY(!rows.picture(QSizeF(200, 24), 2).isNull());
    }
};

QTEST_MAIN(CodeEditTest)
#include "code_edit_test.moc"
