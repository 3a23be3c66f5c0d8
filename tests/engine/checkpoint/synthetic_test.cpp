// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "engine/checkpoint/shards.h"
#include "engine/checkpoint/synthesize.h"
#include "kernels/context/cpu_context.h"
#include "kernels/ops/linear/weights.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

using test::failure;
using test::TempFolder;
using testing::HasSubstr;

TEST(Synthetic, OverridesChangeTheConfig) {
    const auto layers = [](const std::string& count) {
        return openModel("synthetic:gpt-oss-20b", {{"num_hidden_layers", count}}).config.layers;
    };
    EXPECT_EQ(layers("4").size(), 4U);
    EXPECT_EQ(layers("3")[2].window, 128);
    EXPECT_EQ(layers("30").size(), 30U); // more than the file's layer_types
    EXPECT_EQ(layers("30")[29].window, 0);
    const ModelConfig config =
        openModel("synthetic:gpt-oss-20b", {{"num_experts_per_tok", "2"}, {"rope_scaling.factor", "8"}}).config;
    EXPECT_EQ(config.expertsPerToken, 2);
    EXPECT_EQ(config.rope.factor, 8);
    EXPECT_EQ(openModel("synthetic:tiny-llama", {{"hidden_act", "gelu_pytorch_tanh"}}).config.activation,
              kernels::Activation::GeluTanh);
    EXPECT_EQ(openModel("synthetic:tiny-llama", {{"attention_bias", "true"}}).config.qkvBias, true);
    EXPECT_EQ(openModel("synthetic:tiny-mistral", {{"sliding_window", "null"}}).config.layers[0].window, 0);
}

TEST(Synthetic, RefusesUnknownNamesAndFields) {
    EXPECT_THAT(failure([] { openModel("synthetic:gpt-5"); }), HasSubstr("no such shape; known are deepseek-v3, "));
    EXPECT_THAT(failure([] { openModel("synthetic:../tiny-llama"); }), HasSubstr("no such shape"));
    EXPECT_THAT(failure([] { openModel("synthetic:tiny-llama", {{"num_layers", "2"}}); }),
                HasSubstr("\"num_layers\": is no field of llama configs"));
    EXPECT_THAT(failure([] { openModel("synthetic:tiny-llama", {{"rope_parameters.factr", "2"}}); }),
                HasSubstr("rope_parameters.factr"));
    EXPECT_THAT(failure([] { openModel("synthetic:tiny-llama", {{"num_hidden_layers", "many"}}); }),
                HasSubstr("num_hidden_layers: must be an integer"));
    EXPECT_THAT(failure([] { openModel("synthetic:tiny-llama", {{"num_hidden_layers", "-4"}}); }),
                HasSubstr("num_hidden_layers: must be from 1"));
    EXPECT_THAT(failure([] { openModel(vitrine::test::fixture("llama"), {{"num_hidden_layers", "1"}}); }),
                HasSubstr("for synthetic models only"));
}

TEST(Synthetic, RefusesBlocksThatTwoExpertMatricesWouldShare) {
    const std::string blocks = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
    EXPECT_THAT(failure([&] { openModel("synthetic:tiny-qwen3-moe", {{"quantization_config", blocks}}); }),
                HasSubstr("outputs, but blocks of 128 of them share a scale"));
    openModel("synthetic:qwen3-30b-a3b", {{"quantization_config", blocks}});
}

TEST(Synthetic, EveryTinyFamilyIsThere) {
    std::set<Family> families;
    for (const std::string& name : syntheticNames()) {
        if (name.compare(0, 5, "tiny-") == 0) {
            families.insert(openModel("synthetic:" + name).config.family);
        }
    }
    EXPECT_EQ(families.size(), 8U);
}

TEST(Synthesize, WritesAModelThatOpens) {
    for (const std::string& name : syntheticNames()) {
        if (name.compare(0, 5, "tiny-") != 0) {
            continue;
        }
        const TempFolder folder;
        const ModelSource source = openModel("synthetic:" + name);
        std::vector<std::uint32_t> streams;
        const FillTensor fill = [&](const TensorSpec& spec, const RandomRule&, std::uint32_t stream, void* data) {
            streams.push_back(stream);
            std::memset(data, static_cast<int>(stream), bytesOf(spec));
        };
        const std::string out = folder.file("model");
        const SynthesizedFiles files = synthesizeCheckpoint(source, out, fill, nullptr, {}, 64 << 10);
        EXPECT_GT(files.files.size(), 4U) << name; // shards
        const ModelSource back = openModel(out);
        const std::vector<TensorSpec> specs = expectedTensors(source.config);
        ASSERT_EQ(streams.size(), specs.size());
        for (std::size_t i = 0; i < specs.size(); ++i) {
            EXPECT_EQ(streams[i], i);
            const auto* location = back.checkpoint->find(specs[i].name);
            ASSERT_NE(location, nullptr);
            unsigned char last = 0;
            location->file->read(*location->entry, location->entry->bytes - 1, &last, 1);
            EXPECT_EQ(last, i % 256);
        }
        EXPECT_THAT(failure([&] { synthesizeCheckpoint(source, out, fill, nullptr, {}); }),
                    HasSubstr("holds a model already"));
    }
}

TEST(Synthesize, StopsAndLeavesNoModel) {
    const TempFolder folder;
    base::StopSource stop;
    const FillTensor fill = [&](const TensorSpec&, const RandomRule&, std::uint32_t stream, void*) {
        if (stream == 5) {
            stop.request_stop();
        }
    };
    const std::string out = folder.file("model");
    EXPECT_THROW(synthesizeCheckpoint(openModel("synthetic:tiny-llama"), out, fill, nullptr, stop.get_token()),
                 base::Cancelled);
    EXPECT_TRUE(std::filesystem::is_empty(out));
}

TEST(Synthesize, RulesKeepTheSpread) {
    const ModelConfig oss = openModel("synthetic:gpt-oss-20b").config;
    const ModelConfig gemma = openModel("synthetic:tiny-gemma2").config;
    for (const TensorSpec& spec : expectedTensors(oss)) {
        const RandomRule rule = randomRule(oss, spec);
        if (spec.name == "model.layers.0.self_attn.q_proj.weight") {
            EXPECT_FLOAT_EQ(rule.deviation, 1 / std::sqrt(2880.0F));
        } else if (spec.name == "model.layers.0.mlp.experts.down_proj_scales") {
            EXPECT_EQ(rule.deviation, 0);
            // Uniform nibbles have a deviation of 2.93.
            const float spread = 2.926F * std::ldexp(1.0F, static_cast<int>(rule.center) - 127);
            EXPECT_NEAR(spread * std::sqrt(2880.0F), 1, 0.42);
        } else if (spec.name == "model.norm.weight") {
            EXPECT_EQ(rule.center, 1);
        }
    }
    for (const TensorSpec& spec : expectedTensors(gemma)) {
        if (spec.part == ModelPart::Norm) {
            EXPECT_EQ(randomRule(gemma, spec).center, 0);
        } else if (spec.part == ModelPart::Embedding) {
            EXPECT_FLOAT_EQ(randomRule(gemma, spec).deviation, 1.0F / 8);
        }
    }
}

TEST(Synthesize, ElementsOfFp8AreNumbers) {
    const ModelConfig config =
        openModel("synthetic:tiny-llama", {{"quantization_config", R"({"quant_method": "fp8"})"}}).config;
    int packed = 0;
    for (const TensorSpec& spec : expectedTensors(config)) {
        if (spec.packing.format != kernels::WeightFormat::Fp8 || spec.stored.field != kernels::WeightField::Data) {
            continue;
        }
        ++packed;
        const RandomRule rule = randomRule(config, spec);
        kernels::CpuContext context(1);
        std::vector<std::uint8_t> bytes(4096);
        const kernels::TensorView out{bytes.data(), kernels::DType::U8, kernels::Shape{4096}};
        kernels::execute(context, kernels::FillRandom{out, 1, 1, rule.center, rule.deviation});
        EXPECT_EQ(std::ranges::count_if(bytes, [](std::uint8_t byte) { return (byte & 0x7F) == 0x7F; }), 0);
    }
    EXPECT_GT(packed, 0);
}

TEST(Synthesize, WhatHasNoRoomOnTheDiskIsRefusedFirst) {
    const TempFolder folder;
    const std::string below = folder.path() + "/a/b/c";
    constexpr std::uint64_t kTooMuch = std::uint64_t{1} << 60;
    EXPECT_NO_THROW(requireFreeSpace(below, 1));
    try {
        requireFreeSpace(below, kTooMuch);
        ADD_FAILURE();
    } catch (const base::BadInput& error) {
        EXPECT_THAT(error.message(),
                    testing::StartsWith(below + ": needs " + base::formatBytes(kTooMuch) + " of disk"));
        EXPECT_THAT(error.message(), HasSubstr(" are free; free some, or name another folder"));
    }
    EXPECT_THROW(makeModelFolder(folder.path() + "/a", kTooMuch), base::BadInput);
    EXPECT_FALSE(std::filesystem::exists(folder.path() + "/a"));
}

} // namespace
} // namespace vitrine::engine
