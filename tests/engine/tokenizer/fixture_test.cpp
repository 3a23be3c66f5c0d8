// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Every row of every reference file in tests/fixtures/tokenizers: ids and text as Hugging Face's tokenizers gave them.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/tokenizer/tokenizer.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> fixtureNames() {
    std::vector<std::string> names;
    const std::string ending = ".expected.json";
    for (const auto& entry : fs::directory_iterator(vitrine::test::fixture("tokenizers"))) {
        const std::string file = entry.path().filename().string();
        if (file.ends_with(ending)) {
            names.push_back(file.substr(0, file.size() - ending.size()));
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

class TokenizerFixture : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        const fs::path folder = vitrine::test::fixture("tokenizers");
        tokenizer_ = Tokenizer::load((folder / (GetParam() + ".tokenizer.json")).string());
        std::ifstream in(folder / (GetParam() + ".expected.json"));
        rows_ = nlohmann::json::parse(in);
    }

    std::string streamed(const std::vector<std::int32_t>& ids, bool skipSpecial = false) const {
        StreamDecoder stream(tokenizer_, skipSpecial);
        std::string text;
        for (const std::int32_t id : ids) {
            text += stream.push(id);
        }
        return text + stream.finish();
    }

    std::shared_ptr<const Tokenizer> tokenizer_;
    nlohmann::json rows_;
};

TEST_P(TokenizerFixture, encodesAndDecodesEveryRow) {
    ASSERT_GT(rows_.size(), 20U);
    for (const auto& row : rows_) {
        const auto text = row.at("text").get<std::string>();
        const auto expected = row.at("ids").get<std::vector<std::int32_t>>();
        EXPECT_EQ(tokenizer_->encode(text, false), expected) << row.dump();
        EXPECT_EQ(tokenizer_->decode(expected), row.at("decoded").get<std::string>()) << row.dump();
        if (row.contains("ids_special")) {
            EXPECT_EQ(tokenizer_->encode(text, true), row.at("ids_special").get<std::vector<std::int32_t>>()) << text;
        }
        if (row.contains("decoded_skip")) {
            EXPECT_EQ(tokenizer_->decode(expected, true), row.at("decoded_skip").get<std::string>()) << row.dump();
        }
    }
}

TEST_P(TokenizerFixture, streamsWhatItDecodes) {
    for (const auto& row : rows_) {
        const auto ids = row.at("ids").get<std::vector<std::int32_t>>();
        EXPECT_EQ(streamed(ids), row.at("decoded").get<std::string>()) << row.dump();
    }
}

TEST_P(TokenizerFixture, streamsRandomIdsInWholeCodePoints) {
    std::mt19937 random(7);
    std::uniform_int_distribution<std::int32_t> anyId(-2, tokenizer_->vocabSize() + 2);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::int32_t> ids(static_cast<std::size_t>(round % 40));
        std::generate(ids.begin(), ids.end(), [&] { return anyId(random); });
        for (const bool skip : {false, true}) {
            StreamDecoder stream(tokenizer_, skip);
            std::string text;
            for (std::size_t i = 0; i <= ids.size(); ++i) {
                const std::string part = i < ids.size() ? stream.push(ids[i]) : stream.finish();
                // nlohmann's dump() refuses anything that is not whole, valid code points.
                EXPECT_NO_THROW(static_cast<void>(nlohmann::json(part).dump()));
                text += part;
            }
            EXPECT_EQ(text, tokenizer_->decode(ids, skip));
        }
    }
}

TEST_P(TokenizerFixture, piecesAndIdsAreInverse) {
    for (std::int32_t id = 0; id < tokenizer_->vocabSize(); ++id) {
        if (tokenizer_->isKnown(id)) {
            EXPECT_EQ(tokenizer_->idOf(tokenizer_->pieceOf(id)), id);
        }
    }
    EXPECT_TRUE(tokenizer_->pieceOf(-1).empty());
    EXPECT_TRUE(tokenizer_->pieceOf(tokenizer_->vocabSize()).empty());
}

std::string parameterName(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(References, TokenizerFixture, testing::ValuesIn(fixtureNames()), parameterName);

} // namespace
} // namespace vitrine::engine
