// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/answer_number.h"

#include <charconv>
#include <system_error>

namespace vitrine::engine {

namespace {

constexpr std::string_view kUnicodeMinus = "\xE2\x88\x92";

bool isDigitAt(std::string_view text, std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

bool isLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::size_t digitsEnd(std::string_view text, std::size_t at) {
    while (isDigitAt(text, at)) {
        ++at;
    }
    return at;
}

/// "e-3" behind a number, if nothing of a word follows.
std::size_t exponentEnd(std::string_view text, std::size_t at) {
    if (at >= text.size() || (text[at] != 'e' && text[at] != 'E')) {
        return at;
    }
    const bool isSigned = at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+');
    const std::size_t begin = at + (isSigned ? 2 : 1);
    const std::size_t end = digitsEnd(text, begin);
    return end == begin || (end < text.size() && isLetter(text[end])) ? at : end;
}

/// The end of the number without a sign that begins at `at`, with a digit or a point.
std::size_t numberEnd(std::string_view text, std::size_t at) {
    std::size_t end = digitsEnd(text, at);
    if (end > at && end - at <= 3) {
        while (end < text.size() && text[end] == ',' && isDigitAt(text, end + 1) && isDigitAt(text, end + 2) &&
               isDigitAt(text, end + 3) && !isDigitAt(text, end + 4)) {
            end += 4;
        }
    }
    if (end < text.size() && text[end] == '.' && isDigitAt(text, end + 1)) {
        end = digitsEnd(text, end + 1);
    }
    return exponentEnd(text, end);
}

/// `begin`, or the place of the sign before it.
std::size_t withSign(std::string_view text, std::size_t begin) {
    const std::string_view before = text.substr(0, begin);
    std::size_t sign = begin;
    if (before.ends_with('-') || before.ends_with('+')) {
        sign = begin - 1;
    } else if (before.ends_with(kUnicodeMinus)) {
        sign = begin - kUnicodeMinus.size();
    }
    if (sign == begin || sign == 0) {
        return sign;
    }
    const char operand = text[sign - 1];
    const bool isOperand =
        isLetter(operand) || isDigitAt(text, sign - 1) || operand == ')' || operand == '}' || operand == ']';
    return isOperand ? begin : sign;
}

} // namespace

std::optional<NumberPlace> lastNumberPlace(std::string_view text) {
    std::optional<NumberPlace> last;
    for (std::size_t at = 0; at < text.size();) {
        if (isDigitAt(text, at) || (text[at] == '.' && isDigitAt(text, at + 1))) {
            const std::size_t end = numberEnd(text, at);
            last = NumberPlace{at, end};
            at = end;
        } else {
            ++at;
        }
    }
    if (last) {
        last->begin = withSign(text, last->begin);
    }
    return last;
}

std::string plainNumber(std::string_view number) {
    std::string out;
    if (number.starts_with(kUnicodeMinus)) {
        out = "-";
        number.remove_prefix(kUnicodeMinus.size());
    } else if (number.starts_with('+')) {
        number.remove_prefix(1);
    }
    for (const char c : number) {
        if (c != ',') {
            out += c;
        }
    }
    return out;
}

std::optional<double> lastNumber(std::string_view text) {
    const std::optional<NumberPlace> place = lastNumberPlace(text);
    if (!place) {
        return std::nullopt;
    }
    const std::string digits = plainNumber(text.substr(place->begin, place->end - place->begin));
    double value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

} // namespace vitrine::engine
