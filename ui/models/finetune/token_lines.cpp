// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/token_lines.h"

#include <QStringList>
#include <algorithm>
#include <array>

namespace vitrine::ui {

namespace {

struct CharacterRange {
    char32_t first, last;
};

// East Asian wide characters and emoji.
constexpr std::array kWideRanges = {
    CharacterRange{0x1100, 0x115F},   CharacterRange{0x2E80, 0x303E},   CharacterRange{0x3041, 0x33FF},
    CharacterRange{0x3400, 0x4DBF},   CharacterRange{0x4E00, 0x9FFF},   CharacterRange{0xA000, 0xA4CF},
    CharacterRange{0xAC00, 0xD7A3},   CharacterRange{0xF900, 0xFAFF},   CharacterRange{0xFE30, 0xFE4F},
    CharacterRange{0xFF00, 0xFF60},   CharacterRange{0xFFE0, 0xFFE6},   CharacterRange{0x1F300, 0x1F64F},
    CharacterRange{0x1F680, 0x1F6FF}, CharacterRange{0x1F900, 0x1FAFF}, CharacterRange{0x20000, 0x3FFFD}};
constexpr std::array kMarkRanges = {CharacterRange{0x0300, 0x036F}, CharacterRange{0x0483, 0x0489},
                                    CharacterRange{0x0591, 0x05BD}, CharacterRange{0x064B, 0x065F},
                                    CharacterRange{0x200B, 0x200F}, CharacterRange{0x20D0, 0x20F0},
                                    CharacterRange{0xFE00, 0xFE0F}, CharacterRange{0xFE20, 0xFE2F}};

template <class Ranges> bool isIn(const Ranges& ranges, char32_t character) {
    return std::any_of(ranges.begin(), ranges.end(), [character](const CharacterRange& range) {
        return character >= range.first && character <= range.last;
    });
}

/// Bytes of the whole character at `at`; 0: there is none.
std::size_t wholeCharacter(std::string_view bytes, std::size_t at) {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const std::size_t size = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
    if (size == 0 || at + size > bytes.size()) {
        return 0;
    }
    const QString text = QString::fromUtf8(bytes.data() + at, static_cast<qsizetype>(size));
    return text.contains(QChar::ReplacementCharacter) && bytes.substr(at, size) != "\xEF\xBF\xBD" ? 0 : size;
}

QString hexadecimal(unsigned char byte) {
    return QStringLiteral("%1").arg(byte, 2, 16, QLatin1Char('0')).toUpper();
}

} // namespace

QString tokenGlyphs(std::string_view bytes) {
    QString out;
    for (std::size_t at = 0; at < bytes.size();) {
        const auto byte = static_cast<unsigned char>(bytes[at]);
        const std::size_t size = wholeCharacter(bytes, at);
        if (size == 0) {
            QStringList broken;
            for (; at < bytes.size() && wholeCharacter(bytes, at) == 0; ++at) {
                broken << hexadecimal(static_cast<unsigned char>(bytes[at]));
            }
            out += QStringLiteral("‹%1›").arg(broken.join(QLatin1Char(' ')));
            continue;
        }
        out += byte == ' '                   ? QStringLiteral("·")
               : byte == '\n'                ? QStringLiteral("↵")
               : byte == '\t'                ? QStringLiteral("⇥")
               : byte < 0x20 || byte == 0x7F ? QStringLiteral("‹%1›").arg(hexadecimal(byte))
                                             : QString::fromUtf8(bytes.data() + at, static_cast<qsizetype>(size));
        at += size;
    }
    return out;
}

int columnsOf(char32_t character) {
    return isIn(kMarkRanges, character) ? 0 : isIn(kWideRanges, character) ? 2 : 1;
}

int columnsOf(const QString& text) {
    int columns = 0;
    for (const uint character : text.toUcs4()) {
        columns += columnsOf(static_cast<char32_t>(character));
    }
    return columns;
}

TokenLines::TokenLines(const std::vector<TokenCell>& tokens, int columns) : columns_(std::max(1, columns)) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i].startsMessage) {
            endLine();
        }
        add(static_cast<std::int64_t>(i), tokenGlyphs(tokens[i].bytes));
        if (tokens[i].bytes.find('\n') != std::string::npos) {
            endLine();
        }
    }
}

void TokenLines::endLine() {
    open_ = false;
    column_ = 0;
}

void TokenLines::add(std::int64_t token, const QString& text) {
    const int wide = columnsOf(text);
    if (open_ && column_ + wide > columns_) {
        endLine();
    }
    const auto put = [&](const QString& part, int columns) {
        if (!open_) {
            lines_.push_back({token, {}});
            open_ = true;
        }
        lines_.back().pieces.push_back({token, part, column_, columns});
        column_ += columns;
    };
    if (wide <= columns_) {
        put(text, wide);
        return;
    }
    QString part;
    int used = 0;
    for (const uint character : text.toUcs4()) {
        const auto code = static_cast<char32_t>(character);
        if (used > 0 && used + columnsOf(code) > columns_) {
            put(part, used);
            endLine();
            part.clear();
            used = 0;
        }
        part += QString::fromUcs4(&code, 1);
        used += columnsOf(code);
    }
    put(part, used);
}

std::size_t TokenLines::lineOf(std::int64_t token) const {
    const auto after = std::upper_bound(lines_.begin(), lines_.end(), token,
                                        [](std::int64_t wanted, const TokenLine& line) { return wanted < line.first; });
    std::size_t line = after == lines_.begin() ? 0 : static_cast<std::size_t>(after - lines_.begin() - 1);
    while (line > 0 && lines_[line - 1].first == token) {
        --line; // a long token begins in an earlier line
    }
    return line;
}

} // namespace vitrine::ui
