// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/parameter_count.h"

#include <gtest/gtest.h>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {
namespace {

ParameterCount countOf(const std::string& name, const std::map<std::string, std::string>& overrides = {}) {
    return countParameters(openModel("synthetic:" + name, overrides).config);
}

// Published are 671e9 and 37e9 for DeepSeek-V3 (without the layers that predict further tokens), 1.04e12 and 32.6e9 for
// Kimi-K2, 235e9 and 22e9 for Qwen3. The files of Kimi-K2 hold 1.3 % less than its report says, as its config does.
TEST(ParameterCount, IsThatOfPublishedFiles) {
    EXPECT_EQ(countOf("deepseek-v3").all, 671'026'419'200);
    EXPECT_EQ(countOf("deepseek-v3").active, 37'552'297'472);
    EXPECT_EQ(countOf("kimi-k2").all, 1'026'408'232'448);
    EXPECT_EQ(countOf("kimi-k2").active, 32'861'500'928);
    EXPECT_EQ(countOf("qwen3-235b-a22b").all, 235'093'634'560);
    EXPECT_EQ(countOf("qwen3-235b-a22b").active, 22'190'763'520);
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
