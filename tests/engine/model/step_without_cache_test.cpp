// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Steps without a KV cache, over ragged sequences: the same logits as with one, and the same allocations on Meta.

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using kernels::Backend;
using kernels::DType;

/// Token ids of sequences of different lengths.
std::vector<std::vector<std::int32_t>> raggedIds(std::int64_t vocab) {
    std::vector<std::vector<std::int32_t>> out;
    for (const std::int64_t length : {23, 1, 40, 6}) {
        std::vector<std::int32_t>& ids = out.emplace_back();
        for (std::int64_t t = 0; t < length; ++t) {
            ids.push_back(static_cast<std::int32_t>((31 * t + 7 * length) % vocab));
        }
    }
    return out;
}

struct Run {
    std::vector<float> logits; ///< of every token
    std::vector<std::string> allocations;
};

Run forward(const std::string& name, Backend backend, DType dtype, bool withCache) {
    Run out;
    test::RecordingSink sink;
    {
        const kernels::DeviceTraits traits = test::testTraits();
        const auto context = test::makeContext(backend, &sink, &traits);
        const ModelSource source = openModel(name);
        Model model(*context, source, {false, dtype, 7}, nullptr);
        const auto ids = raggedIds(source.config.vocab);
        KvCacheOptions options;
        options.dtype = dtype;
        options.pageTokens = 5;
        KvCache cache(*context, source.config, options);
        StepBatch batch;
        batch.name = "prefill";
        batch.logits = StepLogits::All;
        std::size_t tokens = 0;
        for (const auto& sequence : ids) {
            batch.sequences.push_back({withCache ? cache.addSequence() : -1, sequence});
            tokens += sequence.size();
        }
        out.logits.resize(tokens * static_cast<std::size_t>(source.config.vocab));
        batch.logitsOut = out.logits.data();
        if (withCache) {
            model.step(batch, cache);
        } else {
            EXPECT_GT(model.stepBytes(batch), 0U);
            model.step(batch);
            EXPECT_EQ(cache.bytes(), 0U);
        }
    }
    out.allocations = sink.lines();
    return out;
}

class StepWithoutCache : public ::testing::TestWithParam<std::string> {};

TEST_P(StepWithoutCache, LogitsAreThoseOfAStepWithOne) {
    const std::vector<float> expected = forward(GetParam(), Backend::Cpu, DType::F32, true).logits;
    const std::vector<float> found = forward(GetParam(), Backend::Cpu, DType::F32, false).logits;
    EXPECT_TRUE(std::all_of(found.begin(), found.end(), [](float logit) { return std::isfinite(logit); }));
    EXPECT_EQ(found, expected); // to the last bit: training has the forward pass of inference
}

TEST_P(StepWithoutCache, MetaAllocatesAsTheCpuDoes) {
    const auto cpu = forward(GetParam(), Backend::Cpu, DType::BF16, false).allocations;
    const auto meta = forward(GetParam(), Backend::Meta, DType::BF16, false).allocations;
    EXPECT_GT(cpu.size(), 50U);
    EXPECT_EQ(cpu, meta);
}

std::vector<std::string> cachelessModels() {
    std::vector<std::string> out;
    for (const std::string& name : test::modelFixtures()) {
        out.push_back(test::fixture(name));
    }
    return out;
}

std::string cachelessModelName(const ::testing::TestParamInfo<std::string>& info) {
    std::string name = info.param.substr(info.param.find_last_of('/') + 1);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Every, StepWithoutCache, ::testing::ValuesIn(cachelessModels()), cachelessModelName);

} // namespace
} // namespace vitrine::engine
