// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/forms/code_colors.h"

#include <QTextDocument>
#include <algorithm>

#include "engine/language/python/tokens.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

using Kind = engine::CodeToken::Kind;

CodeColor colorOf(Kind kind) {
    switch (kind) {
    case Kind::Keyword:
        return CodeColor::Keyword;
    case Kind::Builtin:
        return CodeColor::Builtin;
    case Kind::Number:
        return CodeColor::Number;
    case Kind::String:
        return CodeColor::String;
    case Kind::Comment:
        return CodeColor::Comment;
    case Kind::Error:
        return CodeColor::Error;
    case Kind::Name:
    case Kind::Operator:
        break;
    }
    return CodeColor::Plain;
}

QColor inkOf(CodeColor color, const ThemeTokens& theme) {
    const auto set = [&theme](const char* name) { return theme.sets.at(QLatin1String(name)); };
    switch (color) {
    case CodeColor::Keyword:
        return set("syntax.keyword");
    case CodeColor::Builtin:
        return set("syntax.builtin");
    case CodeColor::Function:
        return theme.accent;
    case CodeColor::Number:
        return theme.warn;
    case CodeColor::String:
        return theme.good;
    case CodeColor::Comment:
        return theme.text3;
    case CodeColor::Error:
        return theme.bad;
    case CodeColor::Plain:
        break;
    }
    return theme.text1;
}

/// Places in UTF-16 of ascending places in UTF-8.
class Places {
public:
    explicit Places(std::string_view text) : text_(text) {}
    int at(std::size_t byte) {
        for (; byte_ < byte && byte_ < text_.size(); ++byte_) {
            const auto c = static_cast<unsigned char>(text_[byte_]);
            // A character begins here; those of four bytes are two units.
            units_ += (c & 0xC0U) == 0x80U ? 0 : c >= 0xF0U ? 2 : 1;
        }
        return units_;
    }

private:
    std::string_view text_;
    std::size_t byte_ = 0;
    int units_ = 0;
};

} // namespace

std::vector<CodePiece> codePieces(const QString& text) {
    const std::string utf8 = text.toStdString();
    Places places(utf8);
    std::vector<CodePiece> pieces;
    bool afterDef = false;
    for (const engine::CodeToken& token : engine::codeTokens(utf8)) {
        const std::string_view word = std::string_view(utf8).substr(token.begin, token.end - token.begin);
        const bool named = token.kind == Kind::Name || token.kind == Kind::Builtin;
        const CodeColor color = afterDef && named ? CodeColor::Function : colorOf(token.kind);
        afterDef = token.kind == Kind::Keyword && (word == "def" || word == "class");
        const int begin = places.at(token.begin);
        const int end = places.at(token.end);
        if (color != CodeColor::Plain) {
            pieces.push_back({begin, end, color});
        }
    }
    return pieces;
}

CodeColors::CodeColors(QTextDocument* document) : QSyntaxHighlighter(document) {
    connect(&Theme::instance(), &Theme::changed, this, &QSyntaxHighlighter::rehighlight);
}

void CodeColors::read() {
    if (revision_ == document()->revision()) {
        return;
    }
    revision_ = document()->revision();
    std::vector<CodePiece> pieces = codePieces(document()->toPlainText());
    // A string that ends here now gives lines above another colour, which Qt does not look at again by itself.
    const auto [before, after] = std::mismatch(pieces_.begin(), pieces_.end(), pieces.begin(), pieces.end());
    const bool above = (after != pieces.end() && after->begin < currentBlock().position()) ||
                       (before != pieces_.end() && before->begin < currentBlock().position());
    pieces_ = std::move(pieces);
    if (above) {
        QMetaObject::invokeMethod(this, &QSyntaxHighlighter::rehighlight, Qt::QueuedConnection);
    }
}

void CodeColors::highlightBlock(const QString& text) {
    read();
    const int from = currentBlock().position();
    const int to = from + static_cast<int>(text.size());
    auto piece =
        std::partition_point(pieces_.begin(), pieces_.end(), [from](const CodePiece& one) { return one.end <= from; });
    // A string that goes on below: a change of it changes the colours of the lines that follow.
    int state = 0;
    for (; piece != pieces_.end() && piece->begin < to + 1; ++piece) {
        const int begin = std::max(piece->begin, from);
        const int end = std::min(piece->end, to);
        if (begin < end) {
            setFormat(begin - from, end - begin, inkOf(piece->color, themeTokens()));
        }
        if (piece->end > to) {
            state = 1 + static_cast<int>(piece->color);
        }
    }
    setCurrentBlockState(state);
}

} // namespace vitrine::ui
