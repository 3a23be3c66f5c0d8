// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

ModelSource fixture(const std::string& name) {
    return openModel(vitrine::test::fixture(name));
}

std::vector<std::int64_t> windows(const ModelConfig& config) {
    std::vector<std::int64_t> out;
    for (const LayerConfig& layer : config.layers) {
        out.push_back(layer.window);
    }
    return out;
}

using Windows = std::vector<std::int64_t>;

TEST(ConfigFixtures, GptOssInBothForms) {
    for (const char* name : {"gpt-oss-bf16", "gpt-oss-mxfp4"}) {
        const ModelConfig config = fixture(name).config;
        EXPECT_EQ(config.family, Family::GptOss);
        EXPECT_EQ(config.packing("model.layers.0.mlp.experts.down_proj") != nullptr,
                  std::string(name) == "gpt-oss-mxfp4");
        EXPECT_EQ(windows(config), (Windows{8, 0, 8, 0}));
        EXPECT_EQ(config.rope.type, RopeType::Yarn);
        EXPECT_EQ(config.rope.theta, 150000);
        EXPECT_EQ(config.rope.factor, 32);
        EXPECT_EQ(config.rope.originalMaxPositions, 4096);
        EXPECT_FALSE(config.rope.truncate);
        EXPECT_EQ(config.experts, 4);
        EXPECT_EQ(config.expertsPerToken, 2);
        EXPECT_EQ(config.moeIntermediate, 64);
        EXPECT_TRUE(config.qkvBias && config.outBias && config.routerBias && config.expertBias && config.sinks);
        EXPECT_TRUE(config.layers[3].moe);
        EXPECT_EQ(config.attentionScale, 0.25);
        EXPECT_EQ(config.normForm, kernels::RmsNormOrder::ScaleThenCast);
        EXPECT_EQ(config.activation, kernels::Activation::ClampedSwiglu);
        EXPECT_EQ(config.gateLayout, kernels::GateLayout::Interleaved);
        EXPECT_TRUE(config.eosTokens.empty());
        EXPECT_EQ(config.padToken, -1);
    }
}

TEST(ConfigFixtures, Llama) {
    const ModelSource source = fixture("llama");
    EXPECT_EQ(source.config.family, Family::Llama);
    EXPECT_EQ(source.config.rope.type, RopeType::Llama3);
    EXPECT_EQ(source.config.rope.originalMaxPositions, 64);
    EXPECT_EQ(source.config.rope.highFreqFactor, 4);
    EXPECT_EQ(source.config.normEps, 1e-6);
    EXPECT_EQ(source.config.eosTokens, std::vector<std::int32_t>{2});
    EXPECT_EQ(source.generation.eosTokens, std::vector<std::int32_t>{2});
    EXPECT_EQ(source.generation.bosToken, 1);
    EXPECT_FALSE(source.config.qkvBias);
    EXPECT_TRUE(source.tokenizerFile.empty());
    const ModelConfig linear = fixture("llama-linear-rope").config;
    EXPECT_TRUE(linear.qkvBias && linear.outBias && linear.mlpBias);
    EXPECT_EQ(linear.rope.type, RopeType::Linear);
    EXPECT_EQ(linear.rope.factor, 4);
    const ModelConfig dynamic = fixture("llama-dynamic-rope").config;
    EXPECT_EQ(dynamic.rope.type, RopeType::Dynamic);
    EXPECT_EQ(dynamic.rope.originalMaxPositions, 16);
}

TEST(ConfigFixtures, SlidingWindowsOfTheFamilies) {
    EXPECT_EQ(windows(fixture("mistral").config), (Windows{8, 8, 8}));
    EXPECT_EQ(windows(fixture("qwen2").config), (Windows{0, 0, 0}));
    EXPECT_EQ(windows(fixture("qwen2-sliding").config), (Windows{0, 6, 6}));
    EXPECT_EQ(windows(fixture("gemma2").config), (Windows{8, 0, 8}));
    EXPECT_EQ(windows(fixture("qwen3").config), (Windows{0, 0, 0}));
    EXPECT_EQ(windows(fixture("qwen3-moe").config), (Windows{0, 0, 0}));
}

TEST(ConfigFixtures, Qwen) {
    const ModelConfig qwen2 = fixture("qwen2").config;
    EXPECT_TRUE(qwen2.qkvBias && !qwen2.outBias && qwen2.tiedEmbeddings);
    EXPECT_EQ(qwen2.headDim, 16);
    const ModelConfig qwen3 = fixture("qwen3").config;
    EXPECT_TRUE(qwen3.qkNorm && !qwen3.qkvBias && !qwen3.tiedEmbeddings);
    EXPECT_EQ(qwen3.queryWidth(), 128);
    EXPECT_TRUE(fixture("qwen3-tied").config.tiedEmbeddings);
    const ModelConfig moe = fixture("qwen3-moe").config;
    EXPECT_EQ(moe.experts, 8);
    EXPECT_EQ(moe.moeIntermediate, 32);
    EXPECT_TRUE(moe.routerNormalize && moe.layers[0].moe && !moe.fusedExperts);
    EXPECT_EQ(moe.routerOrder, kernels::RouterOrder::SoftmaxThenTopK);
}

TEST(ConfigFixtures, Gemma2) {
    const ModelConfig config = fixture("gemma2").config;
    EXPECT_EQ(config.attentionSoftCap, 50);
    EXPECT_EQ(config.finalSoftCap, 30);
    EXPECT_EQ(config.attentionScale, 0.25);
    EXPECT_EQ(config.activation, kernels::Activation::GeluTanh);
    EXPECT_EQ(config.normForm, kernels::RmsNormOrder::OnePlusWeight);
    EXPECT_TRUE(config.postNorms && config.scaleEmbedding && config.tiedEmbeddings);
    EXPECT_EQ(config.padToken, 0);
}

TEST(ConfigFixtures, EveryTensorOfTheFilesIsExpected) {
    for (const char* name : {"gpt-oss-bf16", "gpt-oss-mxfp4", "llama", "llama-linear-rope", "llama-dynamic-rope",
                             "mistral", "qwen2", "qwen2-sliding", "qwen3", "qwen3-tied", "qwen3-moe", "gemma2"}) {
        const ModelSource source = fixture(name);
        std::uint64_t bytes = 0;
        std::size_t count = 0;
        for (const TensorSpec& spec : expectedTensors(source.config)) {
            bytes += bytesOf(spec);
            ++count;
        }
        EXPECT_EQ(count, source.checkpoint->tensors().size()) << name;
        EXPECT_EQ(bytes, source.checkpoint->totalBytes()) << name;
    }
}

} // namespace
} // namespace vitrine::engine
