// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/parameter_count.h"

#include <gtest/gtest.h>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {
namespace {

void expectNear(std::int64_t found, double published) {
    EXPECT_NEAR(static_cast<double>(found) / published, 1, 0.01);
}

ParameterCount countOf(const std::string& name, const std::map<std::string, std::string>& overrides = {}) {
    return countParameters(openModel("synthetic:" + name, overrides).config);
}

// As their authors publish them: DeepSeek-V3 without its head for several tokens, Kimi-K2 and Qwen3.
TEST(ParameterCount, IsThatOfPublishedModels) {
    expectNear(countOf("deepseek-v3").all, 671e9);
    expectNear(countOf("deepseek-v3").active, 37e9 - 0.4e9); // 36.6: they round up
    expectNear(countOf("kimi-k2").all, 1.04e12 - 0.013e12);
    expectNear(countOf("qwen3-235b-a22b").all, 235e9);
    expectNear(countOf("qwen3-235b-a22b").active, 22.2e9);
}

TEST(ParameterCount, DoesNotDependOnFormats) {
    const std::string fp8 = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
    EXPECT_EQ(countOf("kimi-k2", {{"quantization_config", fp8}}).all, countOf("kimi-k2").all);
    EXPECT_EQ(countOf("gpt-oss-20b").all, countOf("gpt-oss-20b", {{"quantization_config", "null"}}).all);
}

TEST(ParameterCount, EveryParameterOfADenseModelIsActive) {
    const ParameterCount count = countOf("mistral-7b");
    EXPECT_EQ(count.all, 7'241'732'096);
    EXPECT_EQ(count.active, count.all);
}

} // namespace
} // namespace vitrine::engine
