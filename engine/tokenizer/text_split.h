// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Patterns (a literal, a regular expression, a class of code points) and the five ways to split a text at them.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/regex.h"

namespace vitrine::engine {

/// A stretch [begin, end) of a text; the stretches of one search cover the text without gaps.
struct Stretch {
    std::size_t begin;
    std::size_t end;
    bool isMatch;
};

/// A "pattern" member: {"String": ...} or {"Regex": ...}.
class TextPattern {
public:
    static TextPattern read(const JsonField& pattern);

    std::vector<Stretch> find(std::string_view text) const;
    /// Every match replaced by `content`. Throws BadInput when that makes more than `mostBytes`.
    std::string replace(std::string_view text, std::string_view content, std::size_t mostBytes) const;
    /// The literal, unless this is a regular expression.
    const std::optional<std::string>& literal() const { return literal_; }
    const std::string& where() const { return where_; }

private:
    TextPattern() = default;

    std::optional<std::string> literal_;
    std::optional<Regex> regex_;
    std::string where_;
};

/// The same with matches that were found before; `where` begins the message.
std::string replaceMatches(std::string_view text, const std::vector<Stretch>& stretches, std::string_view content,
                           std::size_t mostBytes, const std::string& where);

/// The most bytes that normalizers and pre-tokenizers may make of a text. Real ones stay far below. The limit keeps a
/// file whose steps double the text again and again from taking all memory.
inline std::size_t growthLimit(std::size_t bytes) {
    return bytes * 32 + (std::size_t{1} << 20U);
}
[[noreturn]] void failGrowth(const std::string& where);

std::vector<Stretch> findCodePoints(std::string_view text, const std::function<bool(char32_t)>& wanted);
std::vector<Stretch> findLiteral(std::string_view text, std::string_view literal);
std::vector<Stretch> coverWith(const std::vector<std::pair<std::size_t, std::size_t>>& matches, std::size_t size);

enum class SplitBehavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

SplitBehavior readSplitBehavior(const JsonField& field);

/// The pieces that remain, in order; empty ones are left out.
std::vector<Stretch> splitAt(std::vector<Stretch> stretches, SplitBehavior behavior, bool invert);

} // namespace vitrine::engine
