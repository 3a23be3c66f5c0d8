// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which bytes of a prompt a user wrote, so that no special token is made of them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace vitrine::engine {

/// A view: text and marks must outlive it.
class WrittenText {
public:
    /// `marks` has a number for each byte, not 0 where it is the user's. Empty: none is.
    WrittenText(std::string_view text, std::span<const std::uint8_t> marks) : text_(text), marks_(marks) {}

    /// Whether one of these bytes is the user's.
    bool touches(std::size_t begin, std::size_t end) const;

    /// Tells of the occurrences of tokens in a changed copy of a part of the text, from left to right: a normalizer
    /// moves bytes and leaves the order of the tokens.
    class Occurrences {
    public:
        Occurrences(const WrittenText& text, std::size_t begin, std::size_t end)
            : text_(text), begin_(begin), end_(end) {}
        bool nextIsWritten(const std::string& token);

    private:
        const WrittenText& text_;
        std::size_t begin_, end_;
        std::map<std::string, std::size_t> next_; ///< for each token where its search goes on
    };

private:
    std::string_view text_;
    std::span<const std::uint8_t> marks_;
};

} // namespace vitrine::engine
