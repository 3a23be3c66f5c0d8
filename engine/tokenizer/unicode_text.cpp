// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/unicode_text.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utf8proc.h>
#include <vector>

#include "base/error.h"

namespace vitrine::engine {

namespace {

bool isAscii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool isContinuation(unsigned char byte) {
    return (byte & 0xC0U) == 0x80U;
}

/// The range that the second byte of a sequence may have; narrower than 80..BF after E0, ED, F0 and F4.
std::pair<unsigned char, unsigned char> secondByteRange(unsigned char first) {
    switch (first) {
    case 0xE0:
        return {0xA0, 0xBF};
    case 0xED:
        return {0x80, 0x9F};
    case 0xF0:
        return {0x90, 0xBF};
    case 0xF4:
        return {0x80, 0x8F};
    default:
        return {0x80, 0xBF};
    }
}

} // namespace

char32_t nextCodePoint(std::string_view text, std::size_t& position) {
    const auto byte = [&](std::size_t offset) {
        return static_cast<char32_t>(static_cast<unsigned char>(text[position + offset]));
    };
    const std::size_t length = utf8Length(text[position]);
    char32_t code = byte(0);
    if (length == 2) {
        code = (code & 0x1FU) << 6U | (byte(1) & 0x3FU);
    } else if (length == 3) {
        code = (code & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    } else if (length == 4) {
        code = (code & 0x07U) << 18U | (byte(1) & 0x3FU) << 12U | (byte(2) & 0x3FU) << 6U | (byte(3) & 0x3FU);
    }
    position += length;
    return code;
}

char32_t codePointBefore(std::string_view text, std::size_t end) {
    std::size_t begin = end - 1;
    while (begin > 0 && isContinuation(static_cast<unsigned char>(text[begin]))) {
        --begin;
    }
    return nextCodePoint(text, begin);
}

std::size_t countCodePoints(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return !isContinuation(static_cast<unsigned char>(c)); }));
}

void appendUtf8(std::string& out, char32_t code) {
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xC0U | code >> 6U);
        out += static_cast<char>(0x80U | (code & 0x3FU));
    } else if (code < 0x10000) {
        out += static_cast<char>(0xE0U | code >> 12U);
        out += static_cast<char>(0x80U | (code >> 6U & 0x3FU));
        out += static_cast<char>(0x80U | (code & 0x3FU));
    } else {
        out += static_cast<char>(0xF0U | code >> 18U);
        out += static_cast<char>(0x80U | (code >> 12U & 0x3FU));
        out += static_cast<char>(0x80U | (code >> 6U & 0x3FU));
        out += static_cast<char>(0x80U | (code & 0x3FU));
    }
}

Utf8Step stepUtf8(std::string_view bytes, std::size_t position) {
    const auto first = static_cast<unsigned char>(bytes[position]);
    if (first < 0x80) {
        return {Utf8Step::Kind::Whole, 1};
    }
    if (first < 0xC2 || first > 0xF4) {
        return {Utf8Step::Kind::Defect, 1};
    }
    const std::size_t length = utf8Length(static_cast<char>(first));
    const auto [low, high] = secondByteRange(first);
    for (std::size_t i = 1; i < length; ++i) {
        if (position + i >= bytes.size()) {
            return {Utf8Step::Kind::Incomplete, i};
        }
        const auto byte = static_cast<unsigned char>(bytes[position + i]);
        if (i == 1 ? byte < low || byte > high : !isContinuation(byte)) {
            return {Utf8Step::Kind::Defect, i};
        }
    }
    return {Utf8Step::Kind::Whole, length};
}

bool isValidUtf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        const Utf8Step step = stepUtf8(text, i);
        if (step.kind != Utf8Step::Kind::Whole) {
            return false;
        }
        i += step.bytes;
    }
    return true;
}

std::string replaceInvalidUtf8(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    for (std::size_t i = 0; i < bytes.size();) {
        const Utf8Step step = stepUtf8(bytes, i);
        out += step.kind == Utf8Step::Kind::Whole ? bytes.substr(i, step.bytes) : kReplacementUtf8;
        i += step.bytes;
    }
    return out;
}

bool isWhiteSpace(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool isDecimal(char32_t c) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND;
}

bool isNumeric(char32_t c) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool isPunctuation(char32_t c) {
    if (c < 0x80) {
        return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
               (c >= 0x7B && c <= 0x7E);
    }
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool isCombiningMark(char32_t c) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool isLetter(char32_t c) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

std::string toLowercase(std::string_view text) {
    constexpr char32_t kCapitalIWithDot = 0x130;
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const char32_t c = nextCodePoint(text, i);
        if (c == kCapitalIWithDot) {
            // The only code point whose full lower-case form has two code points.
            out += "i\xCC\x87";
        } else {
            appendUtf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
        }
    }
    return out;
}

namespace {

/// Small letters whose capitals are several; the second letter on stays small in a title.
struct SeveralCapitals {
    char32_t letter;
    std::string_view upper, title;
};
constexpr std::array<SeveralCapitals, 9> kSeveralCapitals = {{{0xDF, "SS", "Ss"},
                                                              {0x149, "\xCA\xBCN", "\xCA\xBCN"},
                                                              {0xFB00, "FF", "Ff"},
                                                              {0xFB01, "FI", "Fi"},
                                                              {0xFB02, "FL", "Fl"},
                                                              {0xFB03, "FFI", "Ffi"},
                                                              {0xFB04, "FFL", "Ffl"},
                                                              {0xFB05, "ST", "St"},
                                                              {0xFB06, "ST", "St"}}};

template <class Simple>
std::string capitals(std::string_view text, std::string_view SeveralCapitals::* several, Simple simple) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const char32_t c = nextCodePoint(text, i);
        const auto* const found = std::ranges::find(kSeveralCapitals, c, &SeveralCapitals::letter);
        if (found != kSeveralCapitals.end()) {
            out += found->*several;
        } else {
            appendUtf8(out, static_cast<char32_t>(simple(static_cast<utf8proc_int32_t>(c))));
        }
    }
    return out;
}

} // namespace

std::string toUppercase(std::string_view text) {
    return capitals(text, &SeveralCapitals::upper, utf8proc_toupper);
}

std::string toTitlecase(std::string_view text) {
    return capitals(text, &SeveralCapitals::title, utf8proc_totitle);
}

std::string foldCase(std::string_view text) {
    utf8proc_uint8_t* folded = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &folded, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_CASEFOLD));
    if (size < 0) {
        return std::string(text);
    }
    std::string out(reinterpret_cast<const char*>(folded), static_cast<std::size_t>(size));
    std::free(folded); // utf8proc takes it from malloc
    return out;
}

std::string normalizeText(std::string_view text, NormalizationForm form) {
    if (isAscii(text)) {
        return std::string(text);
    }
    const bool compatibility = form == NormalizationForm::Nfkc || form == NormalizationForm::Nfkd;
    const bool compose = form == NormalizationForm::Nfc || form == NormalizationForm::Nfkc;
    const int decompose = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0);
    std::vector<utf8proc_int32_t> codes;
    codes.reserve(text.size());
    std::array<utf8proc_int32_t, 32> buffer{}; // the longest decomposition of one code point has 18
    for (std::size_t i = 0; i < text.size();) {
        const auto code = static_cast<utf8proc_int32_t>(nextCodePoint(text, i));
        const auto count = utf8proc_decompose_char(code, buffer.data(), buffer.size(),
                                                   static_cast<utf8proc_option_t>(decompose), nullptr);
        if (count < 0 || count > static_cast<utf8proc_ssize_t>(buffer.size())) {
            throw base::Internal("Unicode decomposition failed");
        }
        codes.insert(codes.end(), buffer.begin(), buffer.begin() + count);
    }
    // Own canonical ordering: utf8proc's is quadratic for long runs of combining marks.
    const auto combiningClass = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
    for (auto it = codes.begin(); it != codes.end();) {
        it = std::find_if(it, codes.end(), [&](auto c) { return combiningClass(c) != 0; });
        const auto end = std::find_if(it, codes.end(), [&](auto c) { return combiningClass(c) == 0; });
        std::stable_sort(it, end, [&](auto a, auto b) { return combiningClass(a) < combiningClass(b); });
        it = end;
    }
    if (compose) {
        const auto count = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                                                    static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        codes.resize(static_cast<std::size_t>(std::max<utf8proc_ssize_t>(count, 0)));
    }
    std::string out;
    out.reserve(text.size());
    for (const auto code : codes) {
        appendUtf8(out, static_cast<char32_t>(code));
    }
    return out;
}

} // namespace vitrine::engine
