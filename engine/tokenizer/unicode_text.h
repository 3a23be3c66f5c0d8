// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Unicode helpers of the tokenizer: UTF-8 in and out, the character classes that Hugging Face's tokenizers use, and
// the four normalization forms. Everything that takes text expects valid UTF-8 unless it says otherwise.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vitrine::engine {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

enum class NormalizationForm { Nfc, Nfd, Nfkc, Nfkd };

/// Length of a valid UTF-8 sequence by its first byte.
inline std::size_t utf8Length(char first) {
    const auto byte = static_cast<unsigned char>(first);
    return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The code point at `position` of valid UTF-8; moves `position` past it.
char32_t nextCodePoint(std::string_view text, std::size_t& position);
/// The code point that ends at `end` (end > 0).
char32_t codePointBefore(std::string_view text, std::size_t end);
std::size_t countCodePoints(std::string_view text);
void appendUtf8(std::string& out, char32_t codePoint);

/// True when `text` is valid UTF-8 (no surrogates, no overlong forms).
bool isValidUtf8(std::string_view text);

/// How a decoder must read the bytes at `position`: a whole code point, a defect to replace by U+FFFD, or the
/// beginning of a code point whose rest is not there yet.
struct Utf8Step {
    enum class Kind { Whole, Defect, Incomplete };
    Kind kind;
    std::size_t bytes; ///< bytes consumed (Incomplete: bytes that are there)
};
Utf8Step stepUtf8(std::string_view bytes, std::size_t position);

/// Each maximal defect becomes one U+FFFD, as the Unicode standard recommends and Rust's from_utf8_lossy does.
std::string replaceInvalidUtf8(std::string_view bytes);

bool isWhiteSpace(char32_t codePoint);    ///< property White_Space
bool isDecimal(char32_t codePoint);       ///< category Nd
bool isNumeric(char32_t codePoint);       ///< categories Nd, Nl, No
bool isPunctuation(char32_t codePoint);   ///< ASCII punctuation and the categories P*
bool isCombiningMark(char32_t codePoint); ///< categories Mn, Mc, Me
bool isLetter(char32_t codePoint);        ///< categories L*

std::string toLowercase(std::string_view text);
/// By the simple mappings, and the usual letters whose capitals are several (the German sharp s, ligatures).
std::string toUppercase(std::string_view text);
/// Each letter as it is at the beginning of a word.
std::string toTitlecase(std::string_view text);
/// For comparisons: the full case folding of Unicode.
std::string foldCase(std::string_view text);
/// Takes linear time, except for the sorting of runs of combining marks.
std::string normalizeText(std::string_view text, NormalizationForm form);

} // namespace vitrine::engine
