// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Lays tokens out in lines of a fixed number of columns, as a monospace font shows them. It knows no engine: a token is
// its bytes. A token is broken over two lines only where it is longer than a line. A line ends after a token with a
// line break, and each message begins a line.

#include <QString>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::ui {

/// Why a token is trained or not.
enum class TokenKind : std::uint8_t { Trained, NotTrained, Lost };

struct TokenCell {
    std::string bytes;
    bool startsMessage = false;
};

/// A token, or the part of a long one that stands in a line.
struct TokenPiece {
    std::int64_t token = 0; ///< index
    QString text;           ///< as it is shown
    int column = 0, columns = 0;
};

struct TokenLine {
    std::int64_t first = 0; ///< the first token of the line, also where its beginning stands in the line before
    std::vector<TokenPiece> pieces;
};

/// "·" for a space, "↵" for a line break, "⇥" for a tab, "‹0D›" for another control byte, "‹E2 80›" for bytes that are
/// no whole character.
QString tokenGlyphs(std::string_view bytes);
/// Columns that a character takes: 2 for wide ones (CJK, emoji), 0 for marks that stand over another one.
int columnsOf(char32_t character);
int columnsOf(const QString& text);

class TokenLines {
public:
    TokenLines() = default;
    /// `columns` at least 1.
    TokenLines(const std::vector<TokenCell>& tokens, int columns);

    const std::vector<TokenLine>& lines() const { return lines_; }
    int columns() const { return columns_; }
    /// The line in which a token begins; 0 where there is none.
    std::size_t lineOf(std::int64_t token) const;

private:
    void add(std::int64_t token, const QString& text);
    void endLine();

    std::vector<TokenLine> lines_;
    int columns_ = 1, column_ = 0;
    bool open_ = false; ///< the last line takes more
};

} // namespace vitrine::ui
