// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>

#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {
namespace {

TEST(TokenizerUnicode, replacesEachMaximalDefectOnce) {
    const std::string r = "\xEF\xBF\xBD";
    EXPECT_EQ(replaceInvalidUtf8("a\x80"
                                 "b"),
              "a" + r + "b");
    EXPECT_EQ(replaceInvalidUtf8("\xF0\x9F\x98"), r); // cut at the end: one
    EXPECT_EQ(replaceInvalidUtf8("\xF0\x9F\x98"
                                 "a"),
              r + "a");                                               // cut in the middle: one
    EXPECT_EQ(replaceInvalidUtf8("\xC0\xAF"), r + r);                 // overlong
    EXPECT_EQ(replaceInvalidUtf8("\xED\xA0\x80"), r + r + r);         // surrogate
    EXPECT_EQ(replaceInvalidUtf8("\xF4\x90\x80\x80"), r + r + r + r); // above U+10FFFF
    EXPECT_TRUE(isValidUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
    EXPECT_FALSE(isValidUtf8("\xE2\x82"));
}

TEST(TokenizerUnicode, roundsTripEveryCodePoint) {
    for (char32_t code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 37) {
        if (code >= 0xD800 && code <= 0xDFFF) {
            continue;
        }
        std::string text;
        appendUtf8(text, code);
        std::size_t at = 0;
        ASSERT_EQ(nextCodePoint(text, at), code);
        ASSERT_EQ(at, text.size());
        ASSERT_EQ(codePointBefore(text, text.size()), code);
        ASSERT_TRUE(isValidUtf8(text));
    }
}

TEST(TokenizerUnicode, normalizes) {
    EXPECT_EQ(normalizeText("e\xCC\x81", NormalizationForm::Nfc), "\xC3\xA9");
    EXPECT_EQ(normalizeText("\xC3\xA9", NormalizationForm::Nfd), "e\xCC\x81");
    EXPECT_EQ(normalizeText("\xEF\xAC\x81\xC2\xBD", NormalizationForm::Nfkc), "fi1\xE2\x81\x84"
                                                                              "2");
    EXPECT_EQ(normalizeText("q\xCC\x87\xCC\xA3", NormalizationForm::Nfd), "q\xCC\xA3\xCC\x87"); // canonical order
    EXPECT_EQ(normalizeText("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", NormalizationForm::Nfc), "\xED\x95\x9C");
    EXPECT_EQ(toLowercase("\xC4\xB0"
                          "A\xCE\xA3"),
              "i\xCC\x87"
              "a\xCF\x83");
}

TEST(TokenizerUnicode, sortsLongRunsOfMarksQuickly) {
    std::string text = "q";
    for (int i = 0; i < 100'000; ++i) {
        text += "\xCC\x87\xCC\xA3"; // a quadratic sort would take minutes
    }
    const std::string sorted = normalizeText(text, NormalizationForm::Nfd);
    EXPECT_EQ(sorted.size(), text.size());
    EXPECT_EQ(sorted.substr(1, 4), "\xCC\xA3\xCC\xA3");
}

} // namespace
} // namespace vitrine::engine
