// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The experts that steps return on a GPU: steps that run at once, steps launched ahead and graphs.

#include "engine/generation/batch_replay.h"
#include "engine/generation/ngram_drafter.h"
#include "kernels/ops/experts/pack_experts.h"
#include "tests/engine/generation/expert_reference.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/gpu/context_testing.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/gpu/step_sink.h"
#include "tests/kernels/ops/experts/expert_testing.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

TEST(PackExpertsGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(8);
    for (const auto& [type, experts] : {std::pair{kernels::DType::U8, 256}, {kernels::DType::U16, 384}}) {
        for (const auto& [tokens, k] : {std::pair{1, 4}, {77, 8}, {600, 1}}) {
            const kernels::testing::TestTensor ids = kernels::testing::chooseExperts(random, tokens, k, experts);
            kernels::testing::TestTensor out(type, kernels::Shape{tokens, 3, k}); // other layers stay as they are
            kernels::testing::OnDevice device(*kernels::testing::gpu());
            kernels::PackExperts op{device(ids), device(out), 1};
            device.run(op);
            kernels::CpuContext cpu(2);
            kernels::testing::runOp(cpu, kernels::PackExperts{ids, out, 1});
            const std::vector<unsigned char> expected = out.storage();
            device.download(out);
            EXPECT_EQ(out.storage(), expected);
        }
    }
}

class GpuExperts : public GpuTest, public ::testing::WithParamInterface<const char*> {
protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (IsSkipped()) {
            return;
        }
        context_ = cudaContext(&sink_, true);
        // In float32 no choice hangs on the order of a sum.
        model_ = std::make_unique<Model>(*context_, openModel(GetParam()), ModelOptions{false, kernels::DType::F32, 3},
                                         nullptr);
        options_.cache.dtype = kernels::DType::F32;
        options_.cache.pageTokens = 8;
        options_.scheduler.slots = 6;
        options_.scheduler.tokenBudget = 50;
        for (std::size_t i = 0; i < 9; ++i) {
            GenerateRequest request;
            for (std::size_t t = 0; t < 1 + 29 * i % 97; ++t) {
                request.prompt.push_back(static_cast<std::int32_t>((13 * t + 7 * i + 1) % 200));
            }
            request.maxNewTokens = 15 + static_cast<std::int64_t>(7 * i % 31);
            request.returnsExperts = i != 4;
            requests_.push_back(request);
        }
    }

    BatchCounts serve() {
        BatchEngine engine(*model_, nullptr, options_);
        std::vector<ArrivingRequest> arriving;
        for (const GenerateRequest& request : requests_) {
            arriving.push_back({request, 0, {}});
        }
        replayRequests(engine, *context_, std::move(arriving));
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            SCOPED_TRACE(i);
            const GenerateResult& result = engine.result(static_cast<std::int32_t>(i)).result;
            if (requests_[i].returnsExperts) {
                engine::test::expectExperts(*model_, requests_[i], result, result.experts.firstKnown);
            } else {
                EXPECT_EQ(result.experts.tokens(), 0);
            }
        }
        return engine.counts();
    }

    StepSink sink_;
    std::unique_ptr<kernels::Context> context_;
    std::unique_ptr<Model> model_;
    BatchOptions options_;
    std::vector<GenerateRequest> requests_;
};

TEST_P(GpuExperts, OfBatchesAreThoseOfAForwardPass) {
    const BatchCounts counts = serve();
    EXPECT_GT(counts.aheadSteps, counts.steps / 3) << "few steps were launched ahead";
    EXPECT_GT(sink_.replays["decode"], 10);
    options_.scheduler.mode = BatchMode::Static;
    serve();
    options_.scheduler.mode = BatchMode::Continuous;
    options_.cache.sharePrefixes = true;
    serve();
    options_.cache.sharePrefixes = false;
    options_.cache.poolPages = 24;
    options_.scheduler.swapPages = 1000;
    for (const Preemption preemption : {Preemption::Recompute, Preemption::Swap}) {
        options_.scheduler.preemption = preemption;
        EXPECT_GT(serve().preemptions, 0);
    }
    options_.cache.poolPages = 0;
    NgramDrafter ngram({1, 3});
    options_.speculation = {&ngram, 4};
    serve();
}

/// Replays on the ids of the step before.
TEST_P(GpuExperts, OfRequestsThatBeginTogetherAreThoseOfAForwardPass) {
    GenerateOptions options;
    options.cache.dtype = kernels::DType::F32;
    options.prefillChunk = 40;
    GenerateReport report;
    Generator(*model_, nullptr, options).run(requests_, report, {});
    EXPECT_GT(sink_.replays["decode"], 10);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (requests_[i].returnsExperts) {
            SCOPED_TRACE(i);
            engine::test::expectExperts(*model_, requests_[i], report.results[i]);
        }
    }
}

TEST_P(GpuExperts, OfLaunchedStepsAreThoseOfStepsAtOnce) {
    KvCacheOptions paged;
    paged.kind = KvCacheKind::Paged;
    paged.dtype = kernels::DType::F32;
    paged.pageTokens = 8;
    paged.poolPages = 64;
    paged.poolSequences = 2;
    KvCache atOnce(*context_, model_->config(), paged), ahead(*context_, model_->config(), paged);
    const std::vector<std::int32_t> tokens = requests_[3].prompt;
    StepBatch batch;
    batch.name = "prefill";
    batch.experts = true;
    for (KvCache* const cache : {&atOnce, &ahead}) {
        cache->addSequence();
    }
    for (std::size_t begin = 0; begin < tokens.size(); begin += 20) { // pieces that sample nothing
        batch.sequences = {{0, std::span(tokens).subspan(begin, std::min<std::size_t>(20, tokens.size() - begin)),
                            false, std::ssize(tokens)}};
        const StepOutput wanted = model_->step(batch, atOnce);
        ASSERT_TRUE(model_->launch(batch, ahead, Launch::Ops));
        const StepOutput out = model_->finishLaunched();
        EXPECT_EQ(out.experts.bytes, wanted.experts.bytes);
        EXPECT_EQ(out.experts.rows(), std::ssize(batch.sequences[0].tokens));
        EXPECT_EQ(out.experts.layers, wanted.experts.layers);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuExperts, ::testing::Values("synthetic:tiny-gpt-oss", "synthetic:tiny-qwen3-moe"),
                         [](const ::testing::TestParamInfo<const char*>& item) {
                             std::string name = std::string(item.param).substr(15);
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

} // namespace
} // namespace vitrine::gpu
