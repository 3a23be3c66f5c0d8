// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/token_offsets.h"

#include <gtest/gtest.h>
#include <string>

#include "tests/engine/tokenizer/tokenizer_fixtures.h"

namespace vitrine::engine {
namespace {

/// The text of each token, with bars between them.
std::string cut(const char* fixture, const std::string& text) {
    const auto tokenizer = test::tokenizerFixture(fixture);
    const std::vector<std::int32_t> ids = tokenizer->encode(text, false);
    const std::vector<std::size_t> offsets = tokenOffsets(*tokenizer, text, ids);
    EXPECT_EQ(offsets.size(), ids.size() + 1);
    EXPECT_EQ(offsets.back(), text.size());
    std::string out;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_LE(offsets[i], offsets[i + 1]);
        out += (i > 0 ? "|" : "") + text.substr(offsets[i], offsets[i + 1] - offsets[i]);
    }
    return out;
}

std::string pieces(const char* fixture, const std::string& text) {
    const auto tokenizer = test::tokenizerFixture(fixture);
    std::string out;
    for (const std::int32_t id : tokenizer->encode(text, false)) {
        out += (out.empty() ? "" : "|") + tokenizer->bytesOf(id);
    }
    return out;
}

TEST(TokenOffsets, AreThoseOfTheBytesOfTokens) {
    for (const char* name : {"o200k-style", "qwen-style", "llama3-small"}) {
        for (const std::string text : {"Hello world,  how\n\nare you?", "\xC3\xA9\xF0\x9F\x98\x80 x", ""}) {
            EXPECT_EQ(cut(name, text), pieces(name, text)) << name;
        }
    }
    EXPECT_EQ(cut("qwen-style", "a<|im_start|>b"), "a|<|im_start|>|b");
}

TEST(TokenOffsets, TheFirstSpaceOfSentencePieceIsNoByteOfTheText) {
    const std::string text = "Hello world";
    EXPECT_EQ(cut("llama2-style", text), pieces("llama2-style", text).substr(1));
}

TEST(TokenOffsets, GoOnBehindWhatANormalizerChanged) {
    // "e" with an accent of its own becomes one letter.
    const std::string text = "cafe\xCC\x81 noir<|im_end|>";
    const auto tokenizer = test::tokenizerFixture("qwen-style");
    const std::vector<std::int32_t> ids = tokenizer->encode(text, false);
    const std::vector<std::size_t> offsets = tokenOffsets(*tokenizer, text, ids);
    EXPECT_EQ(offsets[ids.size() - 1], text.find("<|im_end|>"));
    const std::size_t before = offsets[ids.size() - 2];
    EXPECT_EQ(text.substr(before, offsets[ids.size() - 1] - before), tokenizer->bytesOf(ids[ids.size() - 2]));
}

} // namespace
} // namespace vitrine::engine
