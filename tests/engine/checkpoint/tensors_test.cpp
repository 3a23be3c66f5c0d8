// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>
#include <set>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {
namespace {

struct Count {
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;
    std::uint64_t expertBytes = 0;
};

Count countTensors(const std::string& model, const std::map<std::string, std::string>& overrides = {}) {
    Count count;
    std::set<std::string> names;
    for (const TensorSpec& spec : expectedTensors(openModel(model, overrides).config)) {
        ++count.tensors;
        count.bytes += bytesOf(spec);
        const bool bias = spec.name.find("_bias") != std::string::npos;
        count.expertBytes += spec.part == ModelPart::Experts && !bias ? bytesOf(spec) : 0;
        EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    }
    return count;
}

// The numbers are those of the published files (fact sheet of gpt-oss).
TEST(ExpectedTensors, GptOss20b) {
    const Count count = countTensors("synthetic:gpt-oss-20b");
    EXPECT_EQ(count.tensors, 459U);
    EXPECT_EQ(count.bytes, 13'761'264'768U);
    EXPECT_EQ(count.expertBytes, 10'152'345'600U);
}

TEST(ExpectedTensors, GptOss120b) {
    const Count count = countTensors("synthetic:gpt-oss-120b");
    EXPECT_EQ(count.bytes, 65'248'815'744U);
    EXPECT_EQ(count.expertBytes, 60'914'073'600U);
}

TEST(ExpectedTensors, GptOssInBf16) {
    EXPECT_EQ(countTensors("synthetic:gpt-oss-20b", {{"quantization_config", "null"}}).bytes, 41'829'514'368U);
    EXPECT_EQ(countTensors("synthetic:gpt-oss-120b", {{"quantization_config", "null"}}).bytes, 233'658'313'344U);
}

TEST(ExpectedTensors, PublishedParameterCounts) {
    EXPECT_EQ(countTensors("synthetic:mistral-7b").bytes, std::uint64_t{2} * 7'241'732'096U);
    EXPECT_EQ(countTensors("synthetic:llama-3.1-8b").bytes, std::uint64_t{2} * 8'030'261'248U);
    EXPECT_EQ(countTensors("synthetic:qwen3-4b").bytes, std::uint64_t{2} * 4'022'468'096U);
    EXPECT_EQ(countTensors("synthetic:qwen3-30b-a3b").bytes, std::uint64_t{2} * 30'532'122'624U);
}

TEST(ExpectedTensors, EveryShapeHasTensors) {
    const std::vector<std::string> names = syntheticNames();
    EXPECT_EQ(names.size(), 17U);
    for (const std::string& name : names) {
        EXPECT_GT(countTensors("synthetic:" + name).tensors, 10U) << name;
    }
}

} // namespace
} // namespace vitrine::engine
