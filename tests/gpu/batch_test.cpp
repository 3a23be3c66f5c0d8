// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Batches on a GPU: answers, graphs and memory.

#include <algorithm>

#include "engine/generation/batch_replay.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/gpu/context_testing.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

struct Answers {
    std::vector<std::vector<std::int32_t>> ids;
    BatchCounts counts;
    std::uint64_t sharedTokens = 0;
};

/// A fixture, and what its cache holds.
using BatchCase = std::tuple<std::string, kernels::DType>;

class GpuBatch : public GpuTest, public ::testing::WithParamInterface<BatchCase> {
protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (IsSkipped()) {
            return;
        }
        kernels::ContextOptions options;
        options.backend = kernels::Backend::Cuda;
        options.foldSteps = true;
        context_ = std::make_unique<kernels::Context>(options);
        // In float32 no answer hangs on the order of a sum.
        model_ = std::make_unique<Model>(*context_, openModel(engine::test::fixture(std::get<0>(GetParam()))),
                                         ModelOptions{false, kernels::DType::F32, 0}, nullptr);
        options_.cache.dtype = std::get<1>(GetParam());
        options_.cache.pageTokens = 8;
        options_.scheduler.slots = 6;
        options_.scheduler.tokenBudget = 50;
        for (std::size_t i = 0; i < 14; ++i) {
            GenerateRequest request;
            for (std::size_t t = 0; t < 1 + 5 * i % 37; ++t) {
                request.prompt.push_back(static_cast<std::int32_t>((13 * t + 7 * i + 1) % 200));
            }
            if (i >= 9) { // begins as an earlier one does
                request.prompt.insert(request.prompt.begin(), requests_[i - 9].prompt.begin(),
                                      requests_[i - 9].prompt.end());
            }
            request.maxNewTokens = 15 + static_cast<std::int64_t>(7 * i % 31);
            requests_.push_back(request);
        }
    }

    Answers serve(const BatchOptions& options) {
        BatchEngine engine(*model_, nullptr, options);
        std::vector<ArrivingRequest> arriving;
        for (const GenerateRequest& request : requests_) {
            arriving.push_back({request, 0, {}});
        }
        replayRequests(engine, *context_, std::move(arriving));
        Answers out;
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            out.ids.push_back(engine.result(static_cast<std::int32_t>(i)).result.ids);
        }
        out.counts = engine.counts();
        out.sharedTokens = engine.cache().book()->sharedTokens();
        return out;
    }

    std::unique_ptr<kernels::Context> context_;
    std::unique_ptr<Model> model_;
    BatchOptions options_;
    std::vector<GenerateRequest> requests_;
};

TEST_P(GpuBatch, AnswersAreThoseOfOneByOne) {
    std::vector<std::vector<std::int32_t>> alone;
    GenerateOptions generate;
    generate.cache.dtype = options_.cache.dtype;
    for (const GenerateRequest& request : requests_) {
        GenerateReport report;
        Generator(*model_, nullptr, generate).run({request}, report, {});
        alone.push_back(report.results[0].ids);
    }
    requests_[5].stopTokens = {alone[5][1]}; // seen one step late
    alone[5].resize(alone[5][0] == alone[5][1] ? 1 : 2);
    const Answers continuous = serve(options_);
    EXPECT_EQ(continuous.ids, alone);
    EXPECT_GT(continuous.counts.aheadSteps, continuous.counts.steps / 3) << "few steps were launched ahead";
    options_.scheduler.mode = BatchMode::Static;
    EXPECT_EQ(serve(options_).ids, alone);
    options_.scheduler.mode = BatchMode::Continuous;
    // Rotary frequencies that follow the length make keys that no other prompt can take.
    options_.cache.sharePrefixes = true;
    options_.cache.poolSequences = 40; // room for all rings that are kept
    const Answers shared = serve(options_);
    EXPECT_EQ(shared.ids, alone);
    EXPECT_EQ(shared.sharedTokens > 0, !model_->config().rope.followsLength());
    options_.cache.sharePrefixes = false;
    options_.cache.poolSequences = 0;
    options_.cache.poolPages = 14;
    options_.scheduler.swapPages = 1000;
    for (const Preemption preemption : {Preemption::Recompute, Preemption::Swap}) {
        options_.scheduler.preemption = preemption;
        const Answers scarce = serve(options_);
        EXPECT_EQ(scarce.ids, alone) << static_cast<int>(preemption);
        EXPECT_GT(scarce.counts.preemptions, 0);
        EXPECT_EQ(scarce.counts.swaps > 0, preemption == Preemption::Swap);
    }
}

/// Prompts that take many steps: pieces that sample nothing are launched ahead as well.
TEST_P(GpuBatch, PiecesOfPromptsDoNotWait) {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        requests_[i].prompt.resize(120, static_cast<std::int32_t>(3 + i));
        requests_[i].maxNewTokens = 1;
    }
    options_.scheduler.tokenBudget = 40;
    options_.cache.poolPages = 100; // more than the short context of a fixture would have
    serve(options_);                // the largest step has made its arena
    const Answers answers = serve(options_);
    EXPECT_GE(answers.counts.steps, 42);
    EXPECT_GT(answers.counts.aheadSteps, answers.counts.steps * 3 / 4);
}

TEST_P(GpuBatch, GivesItsMemoryBack) {
    serve(options_);
    const std::uint64_t before = context_->memory().statistics().current;
    serve(options_);
    EXPECT_EQ(context_->memory().statistics().current, before);
}

INSTANTIATE_TEST_SUITE_P(Every, GpuBatch,
                         ::testing::Combine(::testing::Values("gpt-oss-mxfp4", "llama", "llama-dynamic-rope", "gemma2"),
                                            ::testing::Values(kernels::DType::F32, kernels::DType::F8E4M3,
                                                              kernels::DType::I8)),
                         [](const auto& item) {
                             const kernels::DType dtype = std::get<1>(item.param);
                             std::string name = std::get<0>(item.param);
                             name += dtype == kernels::DType::F32 ? "" : "_" + std::string(kernels::dtypeName(dtype));
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

} // namespace
} // namespace vitrine::gpu
