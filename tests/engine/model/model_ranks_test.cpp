// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Models divided among ranks: the same logits as on one rank but for rounding, greedy ids that are the same, and steps
// that any rank may end.

#include <cmath>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/cache/kv_cache.h"
#include "engine/model/model.h"
#include "kernels/context/device_group.h"
#include "tests/engine/model/integer_twins.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

std::string nameOf(ParallelShape shape) {
    return fmt::format("tp{}_ep{}", shape.tensor, shape.expert);
}

std::vector<ParallelShape> shapes() {
    return {{2, 1}, {3, 1}, {4, 1}, {1, 2}, {1, 4}, {2, 2}, {8, 1}, {1, 8}, {2, 4}};
}

std::vector<std::string> models() {
    std::vector<std::string> out = test::modelFixtures();
    for (const char* name :
         {"llama-8h", "qwen3-8h", "qwen3-moe-8h", "gguf/llama.gguf", "gguf/gpt-oss.gguf", "gguf/qwen3-moe.gguf"}) {
        out.emplace_back(name);
    }
    return out;
}

std::unique_ptr<kernels::DeviceGroup> makeGroup(int ranks, base::TraceSink* sink = nullptr) {
    kernels::ContextOptions options;
    options.threads = 1;
    options.sink = sink;
    options.profile = kernels::ProfileLevel::Full;
    return std::make_unique<kernels::DeviceGroup>(
        std::vector<kernels::ContextOptions>(static_cast<std::size_t>(ranks), options));
}

ModelOptions optionsOf(ParallelShape shape, bool dequantize = false) {
    ModelOptions options;
    options.parallel = shape;
    options.dequantize = dequantize;
    return options;
}

std::vector<std::int32_t> someTokens(const ModelConfig& config, int count) {
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < count; ++i) {
        tokens.push_back(static_cast<std::int32_t>((17 + 31LL * i * i) % config.vocab));
    }
    return tokens;
}

/// The largest difference over the deviation of the expected ones.
double logitsApart(const std::vector<float>& actual, const std::vector<float>& expected) {
    double sum = 0, squares = 0, most = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        sum += expected[i];
        squares += static_cast<double>(expected[i]) * expected[i];
        most = std::max(most, std::fabs(static_cast<double>(actual[i]) - expected[i]));
    }
    const double mean = sum / static_cast<double>(expected.size());
    return most / std::sqrt(squares / static_cast<double>(expected.size()) - mean * mean);
}

/// What a plan says that refuses the shape; empty: it takes it.
std::string refusalOf(const ModelConfig& config, ParallelShape shape) {
    try {
        const ShardPlan plan(config, shape);
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return "";
}

class EveryModelOnRanks : public testing::TestWithParam<std::string> {};

TEST_P(EveryModelOnRanks, GivesTheLogitsOfOneRank) {
    const ModelSource source = openModel(test::fixture(GetParam()));
    for (const bool dequantize : {false, true}) {
        if (dequantize && source.config.packings.empty()) {
            continue;
        }
        const auto alone = test::makeContext(kernels::Backend::Cpu);
        Model whole(*alone, source, optionsOf({}, dequantize), nullptr);
        const std::vector<std::int32_t> tokens = someTokens(source.config, 23);
        const std::vector<float> expected = test::stepLogits(whole, tokens);
        int taken = 0;
        for (const ParallelShape shape : shapes()) {
            SCOPED_TRACE(nameOf(shape));
            if (const std::string refusal = refusalOf(source.config, shape); !refusal.empty()) {
                EXPECT_NE(refusal.find("the nearest number that works is"), std::string::npos) << refusal;
                continue;
            }
            ++taken;
            const auto group = makeGroup(shape.ranks());
            Model model(group->leader(), source, optionsOf(shape, dequantize), nullptr);
            EXPECT_LT(logitsApart(test::stepLogits(model, tokens), expected), 2e-4);
        }
        EXPECT_GE(taken, 1);
    }
}

/// Linears in the layouts of all writers.
TEST(PackedModelsOnRanks, GiveTheLogitsOfOneRank) {
    for (const nlohmann::json& quantization : test::quantizations()) {
        SCOPED_TRACE(quantization.dump());
        test::IntegerTwins twins("llama", quantization);
        const ModelSource source = openModel(twins.writePacked());
        const std::vector<std::int32_t> tokens = someTokens(source.config, 11);
        for (const bool dequantize : {false, true}) {
            const auto alone = test::makeContext(kernels::Backend::Cpu);
            Model whole(*alone, source, optionsOf({}, dequantize), nullptr);
            const std::vector<float> expected = test::stepLogits(whole, tokens);
            int taken = 0;
            for (const ParallelShape shape : {ParallelShape{2, 1}, ParallelShape{4, 1}}) {
                if (!canDivide(source.config, shape)) {
                    continue;
                }
                SCOPED_TRACE(nameOf(shape));
                ++taken;
                const auto group = makeGroup(shape.ranks());
                Model model(group->leader(), source, optionsOf(shape, dequantize), nullptr);
                EXPECT_LT(logitsApart(test::stepLogits(model, tokens), expected), 2e-4);
            }
            EXPECT_GE(taken, 1) << refusalOf(source.config, {2, 1});
        }
    }
}

/// Inputs in any order of groups cannot be divided; outputs can.
TEST(ModelOnRanks, RefusesWeightsWhoseInputsAreOfAnyGroup) {
    test::IntegerTwins twins("llama", {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}, {"desc_act", true}});
    const std::string refusal = refusalOf(openModel(twins.writePacked()).config, {2, 1});
    EXPECT_NE(refusal.find("--tp 2: model.layers.0."), std::string::npos) << refusal;
}

TEST(ModelOnRanks, SaysWhichGroupsCannotBeDivided) {
    const ModelConfig config = openModel(test::fixture("gguf/mixed.gguf")).config;
    EXPECT_EQ(refusalOf(config, {2, 1}), "--tp 2: model.layers.0.mlp.gate_proj.weight: 1 group of 256 features cannot "
                                         "be divided among 2 ranks; the nearest number that works is 1");
}

/// Prompts in pieces and tokens one by one through a cache, whose pages the ranks divide.
TEST(ModelOnRanks, DecodesOverADividedCache) {
    for (const char* name : {"llama-8h", "gpt-oss-mxfp4", "qwen3-moe-8h", "deepseek-v3"}) {
        SCOPED_TRACE(name);
        const ModelSource source = openModel(test::fixture(name));
        const std::vector<std::int32_t> tokens = someTokens(source.config, 40);
        const auto decode = [&](Model& model) {
            KvCacheOptions options;
            options.dtype = kernels::DType::F32;
            KvCache cache(model.context(), model.config(), options);
            const int sequence = cache.addSequence();
            std::vector<float> all;
            for (std::size_t at = 0; at < tokens.size();) {
                const std::size_t count = at == 0 ? 20 : at == 20 ? 7 : 1;
                StepBatch batch;
                batch.sequences = {{sequence, std::span(tokens).subspan(at, count)}};
                std::vector<float> logits(static_cast<std::size_t>(model.config().vocab));
                batch.logitsOut = logits.data();
                model.step(batch, cache);
                all.insert(all.end(), logits.begin(), logits.end());
                at += count;
            }
            return all;
        };
        const auto alone = test::makeContext(kernels::Backend::Cpu);
        Model whole(*alone, source, optionsOf({}), nullptr);
        const std::vector<float> expected = decode(whole);
        for (const ParallelShape shape : {ParallelShape{2, 1}, ParallelShape{4, 1}, ParallelShape{2, 2}}) {
            if (canDivide(source.config, shape)) {
                SCOPED_TRACE(nameOf(shape));
                const auto group = makeGroup(shape.ranks());
                Model model(group->leader(), source, optionsOf(shape), nullptr);
                EXPECT_LT(logitsApart(decode(model), expected), 2e-4);
            }
        }
    }
}

/// Ranks of a synthetic model have the parts of its random weights.
TEST(ModelOnRanks, FillsTheValuesOfOneRank) {
    for (const char* name : {"synthetic:tiny-llama", "synthetic:tiny-gpt-oss", "synthetic:tiny-qwen3-moe"}) {
        SCOPED_TRACE(name);
        const ModelSource source = openModel(name, {{"num_hidden_layers", "2"}});
        const std::vector<std::int32_t> tokens = someTokens(source.config, 9);
        const auto alone = test::makeContext(kernels::Backend::Cpu);
        Model whole(*alone, source, optionsOf({}), nullptr);
        const std::vector<float> expected = test::stepLogits(whole, tokens);
        const auto group = makeGroup(2);
        Model model(group->leader(), source, optionsOf({2, 1}), nullptr);
        EXPECT_LT(logitsApart(test::stepLogits(model, tokens), expected), 2e-4);
    }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, EveryModelOnRanks, testing::ValuesIn(models()), [](const auto& param) {
    std::string name = param.param;
    std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return name;
});

} // namespace
} // namespace vitrine::engine
