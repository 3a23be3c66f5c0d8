// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Colours of the attention language in a document: tokens of the whole text, which need not be correct.

#include <QSyntaxHighlighter>
#include <vector>

namespace vitrine::ui {

enum class CodeColor : std::uint8_t { Plain, Keyword, Function, Builtin, Number, String, Comment, Error };

struct CodePiece {
    int begin = 0, end = 0; ///< UTF-16 units
    CodeColor color = CodeColor::Plain;
    friend bool operator==(const CodePiece&, const CodePiece&) = default;
};
/// Pieces that are not plain, in order.
std::vector<CodePiece> codePieces(const QString& text);

class CodeColors final : public QSyntaxHighlighter {
    Q_OBJECT

public:
    explicit CodeColors(QTextDocument* document);

protected:
    void highlightBlock(const QString& text) override;

private:
    void read();
    std::vector<CodePiece> pieces_;
    int revision_ = -1;
};

} // namespace vitrine::ui
