// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <array>
#include <cmath>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using test::failure;
using testing::HasSubstr;

json llama(const json& rope) {
    return {{"model_type", "llama"},          {"hidden_size", 128},  {"num_attention_heads", 4},
            {"max_position_embeddings", 512}, {"vocab_size", 100},   {"intermediate_size", 96},
            {"num_hidden_layers", 1},         {"rope_scaling", rope}};
}

ModelConfig parsedRope(const json& config) {
    return parseModelConfig(config, "config.json");
}

RopeTable table(const json& rope, std::int64_t length = 1) {
    return makeRopeTable(parsedRope(llama(rope)), length);
}

// 1e-6 relative: the reference values have seven digits.
void expectClose(float found, double expected) {
    EXPECT_NEAR(found, expected, 1e-6 * expected);
}

TEST(RopeTable, YarnOfGptOss) {
    constexpr std::array<double, 32> kExpected{
        1.0,         6.890443e-1, 4.747821e-1, 3.271459e-1, 2.254180e-1, 1.553230e-1, 1.070244e-1, 7.374457e-2,
        5.081327e-2, 3.170570e-2, 1.933500e-2, 1.159205e-2, 6.794959e-3, 3.860359e-3, 2.093792e-3, 1.052602e-3,
        4.564839e-4, 1.293187e-4, 3.830881e-5, 2.639647e-5, 1.818834e-5, 1.253257e-5, 8.635496e-6, 5.950239e-6,
        4.099978e-6, 2.825067e-6, 1.946596e-6, 1.341291e-6, 9.242090e-7, 6.368209e-7, 4.387978e-7, 3.023511e-7};
    const RopeTable yarn = makeRopeTable(openModel("synthetic:gpt-oss-20b").config, 1);
    ASSERT_EQ(yarn.inverseFrequency.size(), kExpected.size());
    for (std::size_t i = 0; i < kExpected.size(); ++i) {
        expectClose(yarn.inverseFrequency[i], kExpected[i]);
    }
    EXPECT_DOUBLE_EQ(yarn.attentionScale, 1.3465735902799727);
}

TEST(RopeTable, DefaultLinearAndDynamic) {
    const RopeTable plain = table(nullptr);
    ASSERT_EQ(plain.inverseFrequency.size(), 16U);
    expectClose(plain.inverseFrequency[1], std::pow(10000.0, -1.0 / 16));
    EXPECT_EQ(plain.attentionScale, 1);
    expectClose(table({{"type", "linear"}, {"factor", 4}}).inverseFrequency[3], std::pow(10000.0, -3.0 / 16) / 4);
    const json dynamic = {{"rope_type", "dynamic"}, {"factor", 2.0}};
    EXPECT_EQ(table(dynamic, 512).inverseFrequency, plain.inverseFrequency);
    const double base = 10000 * std::pow(2.0 * 1024 / 512 - 1, 32.0 / 30);
    expectClose(table(dynamic, 1024).inverseFrequency[5], std::pow(base, -5.0 / 16));
}

TEST(RopeTable, Llama3BlendsTheMiddle) {
    const RopeTable rope = makeRopeTable(openModel("synthetic:llama-3.1-8b").config, 1);
    ASSERT_EQ(rope.inverseFrequency.size(), 64U);
    const auto plain = [](int i) { return std::pow(500000.0, -i / 64.0); };
    expectClose(rope.inverseFrequency[10], plain(10));
    expectClose(rope.inverseFrequency[63], plain(63) / 8);
    // Wavelength 2 pi / plain(32) = 4443 lies between 8192/4 and 8192/1.
    const double smooth = (8192 / (2 * M_PI / plain(32)) - 1) / 3;
    expectClose(rope.inverseFrequency[32], (1 - smooth) * plain(32) / 8 + smooth * plain(32));
}

TEST(RopeTable, YarnAttentionFactor) {
    json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}};
    EXPECT_DOUBLE_EQ(table(yarn).attentionScale, 0.1 * std::log(4.0) + 1);
    yarn["mscale"] = 0.5;
    EXPECT_DOUBLE_EQ(table(yarn).attentionScale, 0.1 * std::log(4.0) + 1);
    yarn["mscale_all_dim"] = 2;
    EXPECT_DOUBLE_EQ(table(yarn).attentionScale, (0.05 * std::log(4.0) + 1) / (0.2 * std::log(4.0) + 1));
    yarn["attention_factor"] = 1.5;
    EXPECT_DOUBLE_EQ(table(yarn).attentionScale, 1.5);
    EXPECT_TRUE(parsedRope(llama(yarn)).rope.truncate);
    yarn.erase("factor");
    EXPECT_EQ(parsedRope(llama(yarn)).rope.factor, 4); // 512 / 128
}

json longRope() {
    json factors = json::array();
    for (int i = 0; i < 16; ++i) {
        factors.push_back(1 + i);
    }
    return {{"type", "longrope"},
            {"short_factor", json(std::vector<double>(16, 1.0))},
            {"long_factor", factors},
            {"original_max_position_embeddings", 128}};
}

TEST(RopeTable, LongRopeTakesTheFactorsOfTheLength) {
    const RopeTable fits = table(longRope(), 128);
    EXPECT_EQ(fits.inverseFrequency, table(nullptr).inverseFrequency);
    EXPECT_DOUBLE_EQ(fits.attentionScale, std::sqrt(1 + std::log(4.0) / std::log(128.0))); // 512 / 128 positions
    const RopeTable beyond = table(longRope(), 129);
    expectClose(beyond.inverseFrequency[3], std::pow(10000.0, -3.0 / 16) / 4);
    EXPECT_EQ(beyond.attentionScale, fits.attentionScale);
    EXPECT_TRUE(parsedRope(llama(longRope())).rope.followsLength());
    json same = longRope();
    same["long_factor"] = same["short_factor"];
    EXPECT_FALSE(parsedRope(llama(same)).rope.followsLength());
    json given = longRope();
    given["factor"] = 1;
    EXPECT_EQ(table(given).attentionScale, 1);
    given["attention_factor"] = 1.25;
    EXPECT_EQ(table(given).attentionScale, 1.25);
}

TEST(RopeConfig, LongRopeNeedsAFactorForEachFrequency) {
    const auto refused = [](const char* key, const json& value) {
        json rope = longRope();
        rope[key] = value;
        return failure([&] { parsedRope(llama(rope)); });
    };
    EXPECT_THAT(refused("short_factor", nullptr), HasSubstr("rope_scaling.short_factor: must be a list of 16 numbers"));
    EXPECT_THAT(refused("long_factor", json::array({1, 2})), HasSubstr("rope_scaling.long_factor"));
    EXPECT_THAT(refused("long_factor", json(std::vector<double>(16, 0.0))), HasSubstr("rope_scaling.long_factor"));
    EXPECT_THAT(refused("long_factor", json(std::vector<std::string>(16, "1"))), HasSubstr("rope_scaling.long_factor"));
}

TEST(RopeConfig, AnOriginalLengthBesideTheDictionaryWins) {
    json config = llama({{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}});
    config["original_max_position_embeddings"] = 64;
    EXPECT_EQ(parsedRope(config).rope.originalMaxPositions, 64);
}

TEST(RopeConfig, BothFormsAndTheirPriority) {
    json config = llama(nullptr);
    config["rope_theta"] = 5000.0;
    EXPECT_EQ(parsedRope(config).rope.theta, 5000);
    config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2}};
    EXPECT_EQ(parsedRope(config).rope.theta, 5000);
    config["rope_parameters"]["rope_theta"] = 7000;
    EXPECT_EQ(parsedRope(config).rope.theta, 7000);
    EXPECT_EQ(parsedRope(config).rope.type, RopeType::Linear);
    config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 3}};
    EXPECT_EQ(parsedRope(config).rope.type, RopeType::Dynamic);
    EXPECT_EQ(parsedRope(config).rope.theta, 5000);
    config.erase("rope_theta");
    EXPECT_EQ(parsedRope(config).rope.theta, 10000);
}

TEST(RopeConfig, GptOssWithoutRopeTakesItsClassDefault) {
    const ModelConfig config = parsedRope({{"model_type", "gpt_oss"}});
    EXPECT_EQ(config.rope.type, RopeType::Yarn);
    EXPECT_EQ(config.rope.theta, 150000);
    EXPECT_EQ(config.rope.factor, 32);
    EXPECT_FALSE(config.rope.truncate);
    const json given = {{"model_type", "gpt_oss"}, {"rope_parameters", {{"rope_type", "default"}}}};
    EXPECT_EQ(parsedRope(given).rope.theta, 150000);
}

TEST(RopeConfig, OneDictionaryForEachLayerType) {
    json config = llama(nullptr);
    const json linear = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 500.0}};
    config["rope_parameters"] = {{"full_attention", linear}, {"sliding_attention", linear}};
    EXPECT_EQ(parsedRope(config).rope.factor, 2);
    config["rope_parameters"]["sliding_attention"]["rope_theta"] = 600.0;
    EXPECT_THAT(failure([&] { parsedRope(config); }),
                HasSubstr("unsupported: config.json: rope_parameters: different"));
    config["rope_parameters"]["sliding_attention"] = nullptr;
    EXPECT_THAT(failure([&] { parsedRope(config); }), HasSubstr("unsupported: config.json: rope_parameters: "));
}

TEST(RopeConfig, RefusesWhatItCannotCompute) {
    const auto refusal = [](const json& rope) { return failure([&] { parsedRope(llama(rope)); }); };
    EXPECT_THAT(refusal({{"rope_type", "mrope"}}), HasSubstr("unsupported: config.json: rope_scaling.rope_type"));
    EXPECT_THAT(refusal({{"type", "ntk"}}), HasSubstr("unsupported: config.json: rope_scaling.type: \"ntk\""));
    EXPECT_THAT(refusal({{"type", "su"}}), HasSubstr("bad_input: config.json: rope_scaling.short_factor"));
    EXPECT_THAT(refusal({{"rope_type", "linear"}}),
                HasSubstr("bad_input: config.json: rope_scaling.factor: is missing"));
    EXPECT_THAT(refusal({{"rope_type", "linear"}, {"factor", -2}}), HasSubstr("rope_scaling.factor: must be from"));
    EXPECT_THAT(refusal({{"rope_type", "linear"}, {"factor", "2"}}), HasSubstr("must be a number"));
    EXPECT_THAT(refusal({{"rope_type", 3}}), HasSubstr("must be a text"));
    EXPECT_THAT(refusal("yarn"), HasSubstr("bad_input: config.json: rope_scaling: must be a JSON object"));
    EXPECT_THAT(refusal({{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}),
                HasSubstr("high_freq_factor: must be larger"));
    EXPECT_THAT(refusal({{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}),
                HasSubstr("unsupported: config.json: rope_scaling.partial_rotary_factor"));
    json config = llama(nullptr);
    config["partial_rotary_factor"] = 0.25;
    EXPECT_THAT(failure([&] { parsedRope(config); }), HasSubstr("unsupported: config.json: partial_rotary_factor"));
    config["partial_rotary_factor"] = 1.0;
    EXPECT_EQ(failure([&] { parsedRope(config); }), "no error");
    config["rope_theta"] = 0;
    EXPECT_THAT(failure([&] { parsedRope(config); }), HasSubstr("rope_theta"));
}

} // namespace
} // namespace vitrine::engine
