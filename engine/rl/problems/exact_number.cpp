// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/exact_number.h"

#include <algorithm>
#include <cstddef>

namespace vitrine::engine {

namespace {

__extension__ using Wide = __int128;

constexpr Wide kWidest = ~(Wide{1} << 127); ///< the lowest number has no counterpart and is not made

struct Fraction {
    Wide top = 0;
    Wide bottom = 1; ///< above 0
};

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

std::optional<Wide> productOf(Wide a, Wide b) {
    Wide out = 0;
    return __builtin_mul_overflow(a, b, &out) || out < -kWidest ? std::nullopt : std::optional(out);
}

std::optional<Wide> sumOf(Wide a, Wide b) {
    Wide out = 0;
    return __builtin_add_overflow(a, b, &out) || out < -kWidest ? std::nullopt : std::optional(out);
}

Fraction lowestTerms(Fraction value) {
    Wide a = value.top < 0 ? -value.top : value.top, b = value.bottom;
    while (b != 0) {
        const Wide rest = a % b;
        a = b;
        b = rest;
    }
    return {value.top / a, value.bottom / a}; // a is the bottom at least where the top is 0
}

std::optional<Fraction> quotientOf(const Fraction& a, const Fraction& b) {
    if (b.top == 0) {
        return std::nullopt;
    }
    const std::optional<Wide> top = productOf(a.top, b.bottom), bottom = productOf(a.bottom, b.top);
    if (!top || !bottom) {
        return std::nullopt;
    }
    return lowestTerms(*bottom < 0 ? Fraction{-*top, -*bottom} : Fraction{*top, *bottom});
}

std::optional<Fraction> totalOf(const Fraction& a, const Fraction& b) {
    const std::optional<Wide> left = productOf(a.top, b.bottom), right = productOf(b.top, a.bottom),
                              bottom = productOf(a.bottom, b.bottom);
    const std::optional<Wide> top = left && right ? sumOf(*left, *right) : std::nullopt;
    return top && bottom ? std::optional(lowestTerms({*top, *bottom})) : std::nullopt;
}

/// Reads a text from its left. A part that is not there as it should be is none, and reading ends.
class NumberReader {
public:
    explicit NumberReader(std::string_view text) : rest_(text) {}

    std::optional<Fraction> whole() {
        std::optional<Fraction> value = signedValue();
        skipSpace();
        return rest_.empty() ? value : std::nullopt;
    }

private:
    bool take(std::string_view what) {
        const bool there = rest_.starts_with(what);
        rest_.remove_prefix(there ? what.size() : 0);
        return there;
    }
    void skipSpace() {
        while (take(" ")) {
        }
    }
    bool nextIsDigit() const { return !rest_.empty() && isDigit(rest_.front()); }

    /// True: there was a minus.
    bool sign() {
        const bool minus = take("-");
        if (!minus) {
            take("+");
        }
        skipSpace();
        return minus;
    }

    std::optional<Fraction> signedValue() {
        const bool minus = sign();
        std::optional<Fraction> value = unsignedValue();
        if (value && minus) {
            value->top = -value->top;
        }
        return value;
    }

    std::optional<Fraction> unsignedValue() {
        if (take("\\frac")) {
            return braces();
        }
        bool integer = false;
        const std::optional<Fraction> first = decimal(integer);
        if (!first) {
            return std::nullopt;
        }
        const bool spaced = rest_.starts_with(' ');
        skipSpace();
        if (take("/")) {
            skipSpace();
            const bool minus = sign();
            bool ignored = false;
            std::optional<Fraction> bottom = decimal(ignored);
            if (bottom && minus) {
                bottom->top = -bottom->top;
            }
            return bottom ? quotientOf(*first, *bottom) : std::nullopt;
        }
        if (integer && take("\\frac")) {
            const std::optional<Fraction> part = braces();
            return part && part->top >= 0 ? totalOf(*first, *part) : std::nullopt;
        }
        if (integer && spaced && nextIsDigit()) {
            return mixedTail(*first);
        }
        return first;
    }

    /// "1/2" of "1 1/2".
    std::optional<Fraction> mixedTail(const Fraction& first) {
        bool topInteger = false, bottomInteger = false;
        const std::optional<Fraction> top = decimal(topInteger);
        if (!top || !topInteger || !take("/")) {
            return std::nullopt;
        }
        const std::optional<Fraction> bottom = decimal(bottomInteger);
        const std::optional<Fraction> part = bottom && bottomInteger ? quotientOf(*top, *bottom) : std::nullopt;
        return part ? totalOf(first, *part) : std::nullopt;
    }

    /// "{a}{b}" or "12" behind "\frac".
    std::optional<Fraction> braces() {
        const std::optional<Fraction> top = brace();
        const std::optional<Fraction> bottom = top ? brace() : std::nullopt;
        return bottom ? quotientOf(*top, *bottom) : std::nullopt;
    }

    std::optional<Fraction> brace() {
        skipSpace();
        if (nextIsDigit()) {
            const Wide digit = rest_.front() - '0';
            rest_.remove_prefix(1);
            return Fraction{digit, 1};
        }
        if (!take("{")) {
            return std::nullopt;
        }
        skipSpace();
        const bool minus = sign();
        bool ignored = false;
        std::optional<Fraction> value = decimal(ignored);
        skipSpace();
        if (!value || !take("}")) {
            return std::nullopt;
        }
        value->top = minus ? -value->top : value->top;
        return value;
    }

    bool isThousands() const {
        return rest_.size() >= 4 && rest_[0] == ',' && isDigit(rest_[1]) && isDigit(rest_[2]) && isDigit(rest_[3]) &&
               (rest_.size() == 4 || !isDigit(rest_[4]));
    }

    /// Digits, in groups or not, and a fraction behind a point.
    std::optional<Fraction> decimal(bool& integer) {
        Fraction value;
        std::size_t digits = 0;
        bool fits = true, grouped = false, behindPoint = false;
        for (; !rest_.empty(); rest_.remove_prefix(1)) {
            const char c = rest_.front();
            if (isDigit(c)) {
                const std::optional<Wide> tens = productOf(value.top, 10);
                const std::optional<Wide> next = tens ? sumOf(*tens, c - '0') : std::nullopt;
                const std::optional<Wide> bottom = productOf(value.bottom, behindPoint ? 10 : 1);
                fits = fits && next && bottom;
                value = fits ? Fraction{*next, *bottom} : value;
                ++digits;
            } else if (c == ',' && !behindPoint && digits > 0 && (grouped || digits <= 3) && isThousands()) {
                grouped = true;
            } else if (c == '.' && !behindPoint && (digits > 0 || (rest_.size() > 1 && isDigit(rest_[1])))) {
                behindPoint = true;
            } else {
                break;
            }
        }
        integer = !behindPoint;
        return digits > 0 && fits ? std::optional(lowestTerms(value)) : std::nullopt;
    }

    std::string_view rest_;
};

std::string digitsOf(Wide value) {
    std::string out;
    const bool minus = value < 0;
    value = minus ? -value : value;
    do {
        out += static_cast<char>('0' + static_cast<int>(value % 10));
        value /= 10;
    } while (value != 0);
    out += minus ? "-" : "";
    std::ranges::reverse(out);
    return out;
}

} // namespace

std::optional<std::string> exactNumber(std::string_view text) {
    const std::optional<Fraction> value = NumberReader(text).whole();
    if (!value) {
        return std::nullopt;
    }
    return digitsOf(value->top) + (value->bottom == 1 ? std::string() : "/" + digitsOf(value->bottom));
}

} // namespace vitrine::engine
