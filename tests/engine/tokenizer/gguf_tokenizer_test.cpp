// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Tokenizers that are written into GGUF files as llama.cpp's converter does it: they give the ids and the texts of the
// tokenizer.json that they come from.

#include "engine/tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/checkpoint/gguf_bytes.h"
#include "tests/engine/tokenizer/tokenizer_fixtures.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using test::GgufBytes;
using ::testing::HasSubstr;

json readJsonFixture(const std::string& name) {
    std::ifstream in(vitrine::test::fixture("tokenizers/" + name + ".json"));
    return json::parse(in);
}

struct GgufTokens {
    std::vector<std::string> pieces;
    std::vector<std::int32_t> types;
    std::vector<float> scores;
};

std::string listBytes(GgufValueType type, std::size_t count, const std::string& elements) {
    return GgufBytes::raw(static_cast<std::uint32_t>(type)) + GgufBytes::raw(std::uint64_t{count}) + elements;
}

std::string ggufList(const std::vector<std::string>& texts) {
    std::string out;
    for (const std::string& text : texts) {
        out += GgufBytes::text(text);
    }
    return listBytes(GgufValueType::Text, texts.size(), out);
}

template <class T> std::string ggufList(GgufValueType type, const std::vector<T>& numbers) {
    std::string out;
    for (const T number : numbers) {
        out += GgufBytes::raw(number);
    }
    return listBytes(type, numbers.size(), out);
}

/// The pieces by their ids. Ids that nothing has are unused tokens, as llama.cpp's converter makes them.
GgufTokens ggufTokensOf(const json& tokenizer) {
    std::map<std::int64_t, std::pair<std::string, std::int32_t>> byId;
    for (const auto& [piece, id] : tokenizer["model"]["vocab"].items()) {
        const bool byte = piece.size() == 6 && piece.starts_with("<0x");
        byId[id.get<std::int64_t>()] = {piece, byte ? 6 : 1};
    }
    for (const json& added : tokenizer["added_tokens"]) {
        byId[added["id"].get<std::int64_t>()] = {added["content"].get<std::string>(), added["special"] ? 3 : 4};
    }
    GgufTokens out;
    for (std::int64_t id = 0; id <= byId.rbegin()->first; ++id) {
        const auto found = byId.find(id);
        const bool unused = found == byId.end();
        out.pieces.push_back(unused ? fmt::format("[PAD{}]", id) : found->second.first);
        out.types.push_back(unused ? 5 : found->second.second);
        out.scores.push_back(static_cast<float>(-id));
    }
    return out;
}

std::string textOfMerge(const json& merge) {
    return merge.is_string() ? merge.get<std::string>()
                             : merge[0].get<std::string>() + " " + merge[1].get<std::string>();
}

GgufBytes withTokens(const GgufTokens& tokens, std::string_view model) {
    GgufBytes out;
    out.words("tokenizer.ggml.model", model);
    out.value("tokenizer.ggml.tokens", GgufValueType::Array, ggufList(tokens.pieces));
    out.value("tokenizer.ggml.token_type", GgufValueType::Array, ggufList(GgufValueType::I32, tokens.types));
    return out;
}

void expectSameIds(const std::string& fixture, const Tokenizer& made) {
    const auto original = test::tokenizerFixture(fixture);
    for (const json& row : readJsonFixture(fixture + ".expected")) {
        const auto text = row["text"].get<std::string>();
        const std::vector<std::int32_t> ids = original->encode(text, true);
        EXPECT_EQ(made.encode(text, true), ids) << text;
        EXPECT_EQ(made.decode(ids), original->decode(ids)) << text;
        EXPECT_EQ(made.decode(ids, true), original->decode(ids, true)) << text;
    }
}

class GgufByteLevel : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(GgufByteLevel, GivesTheIdsOfTokenizerJson) {
    const auto& [fixture, pre] = GetParam();
    const json tokenizer = readJsonFixture(std::string(fixture) + ".tokenizer");
    std::vector<std::string> merges;
    for (const json& merge : tokenizer["model"]["merges"]) {
        merges.push_back(textOfMerge(merge));
    }
    GgufBytes bytes = withTokens(ggufTokensOf(tokenizer), "gpt2");
    bytes.words("tokenizer.ggml.pre", pre);
    bytes.value("tokenizer.ggml.merges", GgufValueType::Array, ggufList(merges));
    bytes.integer("tokenizer.ggml.bos_token_id", 0);
    const test::TempFolder folder;
    expectSameIds(fixture, *Tokenizer::load(folder.write("x.gguf", bytes.bytes())));
}

INSTANTIATE_TEST_SUITE_P(Families, GgufByteLevel,
                         ::testing::Values(std::pair{"llama3-small", "llama-bpe"}, std::pair{"qwen-style", "qwen2"},
                                           std::pair{"o200k-style", "gpt-4o"}));

TEST(GgufSentencePiece, MergesFollowFromScores) {
    const std::string fixture = "llama2-style";
    const json tokenizer = readJsonFixture(fixture + ".tokenizer");
    GgufTokens tokens = ggufTokensOf(tokenizer);
    // A piece is as good as its first merge is early.
    std::map<std::string, float> scores;
    for (const json& merge : tokenizer["model"]["merges"]) {
        std::string piece = textOfMerge(merge);
        piece.erase(piece.find(' '), 1);
        scores.emplace(piece, -static_cast<float>(scores.size()));
    }
    for (std::size_t i = 0; i < tokens.pieces.size(); ++i) {
        const auto found = scores.find(tokens.pieces[i]);
        tokens.scores[i] = found == scores.end() ? -1e6F : found->second;
    }
    GgufBytes bytes = withTokens(tokens, "llama");
    bytes.value("tokenizer.ggml.scores", GgufValueType::Array, ggufList(GgufValueType::F32, tokens.scores));
    const test::TempFolder folder;
    const auto silent = Tokenizer::load(folder.write("y.gguf", bytes.bytes()));
    EXPECT_EQ(silent->encode("", true), (std::vector<std::int32_t>{1}))
        << "llama.cpp's token where the file names none";
    bytes.value("tokenizer.ggml.add_bos_token", GgufValueType::Bool, std::string(1, '\0'));
    expectSameIds(fixture, *Tokenizer::load(folder.write("x.gguf", bytes.bytes())));
}

TEST(GgufTokenizer, TextsBeginAndEndAsTheFileSays) {
    const GgufTokens tokens{{"<s>", "</s>", "a"}, {3, 3, 1}, {}};
    GgufBytes bytes = withTokens(tokens, "gpt2");
    bytes.value("tokenizer.ggml.merges", GgufValueType::Array, ggufList(std::vector<std::string>{}));
    bytes.value("tokenizer.ggml.add_bos_token", GgufValueType::Bool, std::string(1, '\1'));
    bytes.value("tokenizer.ggml.add_eos_token", GgufValueType::Bool, std::string(1, '\1'));
    bytes.integer("tokenizer.ggml.bos_token_id", 0).integer("tokenizer.ggml.eos_token_id", 1);
    const test::TempFolder folder;
    const auto tokenizer = Tokenizer::load(folder.write("x.gguf", bytes.bytes()));
    EXPECT_EQ(tokenizer->encode("a", true), (std::vector<std::int32_t>{0, 2, 1}));
    EXPECT_EQ(tokenizer->encode("a", false), (std::vector<std::int32_t>{2}));
    EXPECT_TRUE(tokenizer->isSpecial(1));
}

GgufBytes withMerges(const GgufTokens& tokens) {
    return withTokens(tokens, "gpt2")
        .value("tokenizer.ggml.merges", GgufValueType::Array, ggufList(std::vector<std::string>{}));
}

/// The pattern of the first step that cuts words, and the warnings.
std::pair<std::string, std::string> wordSplitOf(const GgufBytes& bytes) {
    std::string warnings;
    base::setLogSink([&](base::LogLevel, std::string_view text) { warnings += std::string(text) + "\n"; });
    const json made = ggufTokenizerJson(*GgufHeader::parse(bytes.bytes(), bytes.bytes().size(), "F"));
    base::setLogSink({});
    const json& first = made["pre_tokenizer"]["pretokenizers"][0];
    return {first["type"] == "Split" ? first["pattern"]["Regex"].get<std::string>() : "", warnings};
}

TEST(GgufTokenizer, AFileThatNamesNoWordSplitIsWarnedOf) {
    const auto [unknown, warning] = wordSplitOf(withMerges({{"a", "b"}, {1, 1}, {}}));
    EXPECT_TRUE(unknown.starts_with(R"([\p{P})")) << "what llama.cpp takes for such files";
    EXPECT_THAT(warning, HasSubstr("F: tokenizer.ggml.pre: is missing"));
    const auto [named, silence] = wordSplitOf(withMerges({{"a"}, {1}, {}}).words("tokenizer.ggml.pre", "default"));
    EXPECT_EQ(named, unknown);
    EXPECT_EQ(silence, "");
    const auto [llama3, guess] = wordSplitOf(withMerges({{"<|begin_of_text|>", "<|start_header_id|>"}, {3, 3}, {}}));
    EXPECT_THAT(llama3, HasSubstr(R"(\p{N}{1,3})"));
    EXPECT_THAT(guess, HasSubstr("\"llama-bpe\""));
    const auto [qwen, qwenGuess] =
        wordSplitOf(withMerges({{"<|endoftext|>", "<|im_start|>"}, {3, 3}, {}}).words("general.architecture", "qwen2"));
    EXPECT_THAT(qwen, ::testing::Not(HasSubstr("{1,3}")));
    EXPECT_THAT(qwenGuess, HasSubstr("\"qwen2\""));
}

TEST(GgufTokenizer, NoKeyIsPassedOver) {
    const GgufTokens tokens{{"a"}, {1}, {}};
    const auto warning =
        wordSplitOf(withMerges(tokens).words("tokenizer.ggml.pre", "gpt-2").integer("tokenizer.ggml.novel", 1)).second;
    EXPECT_EQ(
        warning,
        "F: not used: \"tokenizer.ggml.novel\"; where another program uses one of them, its answers may differ\n");
    // Unigram tokenizers alone follow it, in llama.cpp too.
    auto plain = withMerges(tokens).words("tokenizer.ggml.pre", "gpt-2");
    auto flagged = withMerges(tokens).words("tokenizer.ggml.pre", "gpt-2");
    flagged.value("tokenizer.ggml.remove_extra_whitespaces", GgufValueType::Bool, std::string(1, '\1'));
    EXPECT_EQ(wordSplitOf(flagged), wordSplitOf(plain));
}

std::string tokenizerRefusal(const GgufBytes& bytes) {
    return test::failure([&] { ggufTokenizerJson(*GgufHeader::parse(bytes.bytes(), bytes.bytes().size(), "F")); });
}

TEST(GgufTokenizer, WhatIsWrongIsNamed) {
    const GgufTokens tokens{{"a", "b"}, {1, 1}, {}};
    EXPECT_THAT(tokenizerRefusal(GgufBytes()), HasSubstr("F: tokenizer.ggml.tokens: is missing"));
    EXPECT_THAT(tokenizerRefusal(withTokens(tokens, "bert")),
                HasSubstr("F: tokenizer.ggml.model: \"bert\" is not supported"));
    EXPECT_THAT(tokenizerRefusal(withTokens(tokens, "gpt2").words("tokenizer.ggml.pre", "jais")),
                HasSubstr("F: tokenizer.ggml.pre: \"jais\" is not supported; gpt-2, llama-bpe"));
    EXPECT_THAT(tokenizerRefusal(withTokens(tokens, "llama")), HasSubstr("F: tokenizer.ggml.scores: has 0 elements"));
    EXPECT_THAT(tokenizerRefusal(withTokens({{"a", "a"}, {1, 1}, {}}, "gpt2")), HasSubstr("\"a\" is there twice"));
    EXPECT_THAT(tokenizerRefusal(withTokens({{"a", "b"}, {1}, {}}, "gpt2")), HasSubstr("token_type: has 1 elements"));
    EXPECT_THAT(tokenizerRefusal(withTokens({{"\xFF"}, {1}, {}}, "gpt2")), HasSubstr("token 0 is not valid UTF-8"));
    EXPECT_THAT(tokenizerRefusal(withTokens(tokens, "llama")
                                     .value("tokenizer.ggml.scores", GgufValueType::Array,
                                            ggufList(GgufValueType::F32, std::vector<float>{0, 0}))
                                     .integer("tokenizer.ggml.unknown_token_id", 7)),
                HasSubstr("unknown_token_id: no token has the id 7"));
}

} // namespace
} // namespace vitrine::engine
