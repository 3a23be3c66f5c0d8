// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Models whose weights are integers or FP8, in the layout of each writer: their logits are those of a dense model with
// the values that they unpack to.

#include <cmath>
#include <gtest/gtest.h>

#include "tests/engine/model/integer_twins.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;
using kernels::WeightFormat;
using nlohmann::json;
using test::IntegerTwins;
using test::ofCompressedTensors;
using test::quantizations;
using test::storedAs;
using test::StoredBytes;
using test::StoredTensors;

std::vector<float> integerLogits(const std::string& folder, kernels::Backend backend = kernels::Backend::Cpu,
                                 bool dequantize = false) {
    const auto context = test::makeContext(backend);
    ModelOptions options;
    options.dequantize = dequantize;
    Model model(*context, openModel(folder), options, nullptr);
    return test::stepLogits(model, {5, 9, 200, 31, 77, 5, 12, 140, 8, 8, 17});
}

float farthestLogit(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(a[i] - b[i]));
    }
    return largest;
}

TEST(PackedIntegers, GiveTheLogitsOfTheirDenseTwins) {
    for (const json& quantization : quantizations()) {
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("llama", quantization);
        const std::string folder = twins.writePacked();
        EXPECT_FALSE(openModel(folder).config.packings.empty());
        EXPECT_LT(farthestLogit(integerLogits(folder), integerLogits(twins.writeDense())), 5e-5F);
    }
}

TEST(PackedIntegers, AnOrderOfInputsIsFollowed) {
    for (const json& quantization :
         {ofCompressedTensors({{"num_bits", 4}, {"strategy", "group"}, {"group_size", 32}, {"actorder", "group"}}),
          json{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", true}}}) {
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("qwen2", quantization);
        EXPECT_LT(farthestLogit(integerLogits(twins.writePacked()), integerLogits(twins.writeDense())), 5e-5F);
    }
}

TEST(PackedIntegers, TheOrderOfAGptqFileCountsWhateverItsConfigSays) {
    json quantization{{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", true}};
    IntegerTwins twins("llama", quantization);
    quantization["desc_act"] = false;
    EXPECT_LT(farthestLogit(integerLogits(twins.writePackedAs(quantization)), integerLogits(twins.writeDense())),
              5e-5F);
}

TEST(PackedIntegers, ExpertsBecomeOneStack) {
    for (const json& quantization : quantizations()) {
        const bool blocks = quantization.contains("weight_block_size");
        if (blocks) {
            continue; // the tiny experts are smaller than a block
        }
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("qwen3-moe", quantization);
        const std::string folder = twins.writePacked();
        EXPECT_LT(farthestLogit(integerLogits(folder), integerLogits(twins.writeDense())), 5e-5F);
        EXPECT_LT(
            farthestLogit(integerLogits(folder, kernels::Backend::Cpu, true), integerLogits(twins.writeRounded())),
            5e-5F)
            << "expanded to BF16 at load";
    }
}

// As the files of Kimi-K2-Thinking and of DeepSeek-V3 are stored.
TEST(PackedIntegers, LatentAttentionWithPackedExpertsOrAllInBlocks) {
    json experts = ofCompressedTensors({{"num_bits", 4}, {"strategy", "group"}, {"group_size", 32}});
    experts["ignore"] = {"lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
                         "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"};
    const json blocks{{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
    const IntegerTwins::Overrides sizes{
        {"num_hidden_layers", "2"}, {"hidden_size", "128"}, {"moe_intermediate_size", "128"}};
    for (const json& quantization : {experts, blocks}) {
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("deepseek-v3", quantization, sizes);
        const std::string folder = twins.writePacked();
        const ModelConfig config = openModel(folder).config;
        EXPECT_NE(config.packing("model.layers.1.mlp.experts.3.down_proj.weight"), nullptr);
        const bool all = quantization == blocks;
        EXPECT_EQ(config.packing("model.layers.1.mlp.shared_experts.up_proj.weight") != nullptr, all);
        EXPECT_EQ(config.packing("model.layers.0.self_attn.kv_b_proj.weight") != nullptr, all);
        EXPECT_LT(farthestLogit(integerLogits(folder), integerLogits(twins.writeDense())), 5e-5F);
        EXPECT_LT(
            farthestLogit(integerLogits(folder, kernels::Backend::Cpu, true), integerLogits(twins.writeRounded())),
            5e-5F)
            << "expanded to BF16 at load";
    }
}

TEST(PackedIntegers, TakeTheSameMemoryOnMeta) {
    const kernels::DeviceTraits traits = test::testTraits();
    for (const json& quantization : quantizations()) {
        SCOPED_TRACE(quantization.dump());
        IntegerTwins twins("llama", quantization);
        const std::string folder = twins.writePacked();
        const auto lines = [&](kernels::Backend backend, bool dequantize) {
            test::RecordingSink sink;
            const auto context = test::makeContext(backend, &sink, &traits);
            ModelOptions options;
            options.dequantize = dequantize;
            const Model model(*context, openModel(folder), options, nullptr);
            return sink.lines();
        };
        EXPECT_EQ(lines(kernels::Backend::Cpu, false), lines(kernels::Backend::Meta, false));
        EXPECT_EQ(lines(kernels::Backend::Cpu, true), lines(kernels::Backend::Meta, true));
    }
}

TEST(PackedIntegers, SyntheticModelsArePackedByTheirConfig) {
    const std::string text = ofCompressedTensors({{"num_bits", 4}, {"strategy", "group"}, {"group_size", 32}}).dump();
    const ModelSource source = openModel("synthetic:tiny-qwen3-moe", {{"quantization_config", text}});
    EXPECT_NE(source.config.packing("model.layers.0.mlp.experts.3.down_proj.weight"), nullptr);
    EXPECT_EQ(source.config.packing("model.layers.0.mlp.gate.weight"), nullptr);
    const auto context = test::makeContext(kernels::Backend::Cpu);
    const Model model(*context, source, ModelOptions{}, nullptr);
    EXPECT_GT(model.loadReport().residentBytes, 0U);
}

} // namespace
} // namespace vitrine::engine
