// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Speculative decoding on a GPU: answers are those of plain decoding, over rings that go back, and over graphs of steps
// that check drafts and of a draft model's steps.

#include "engine/generation/speculation.h"

#include "engine/generation/batch_replay.h"
#include "engine/generation/model_drafter.h"
#include "engine/generation/ngram_drafter.h"
#include "tests/engine/generation/knowing_drafter.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/gpu/context_testing.h"
#include "tests/gpu/step_sink.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

class GpuSpeculation : public GpuTest, public ::testing::WithParamInterface<std::string> {
protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (IsSkipped()) {
            return;
        }
        kernels::ContextOptions options;
        options.backend = kernels::Backend::Cuda;
        options.foldSteps = true;
        options.sink = &sink_;
        context_ = std::make_unique<kernels::Context>(options);
        model_ = makeModel(0);
        generate_.cache.dtype = kernels::DType::F32;
        for (std::size_t i = 0; i < 6; ++i) {
            GenerateRequest request;
            for (std::size_t t = 0; t < 3 + 11 * i % 29; ++t) {
                request.prompt.push_back(static_cast<std::int32_t>((13 * t + 7 * i + 1) % 200));
            }
            request.maxNewTokens = 25 + static_cast<std::int64_t>(7 * i % 31);
            request.sampling.temperature = i % 3 == 2 ? 0.8F : 0.0F;
            request.samplingNumber = static_cast<std::uint32_t>(i);
            requests_.push_back(request);
        }
        plain_ = run();
    }

    /// In float32, where no answer hangs on the order of a sum.
    std::unique_ptr<Model> makeModel(std::uint64_t seed) {
        return std::make_unique<Model>(*context_, openModel("synthetic:tiny-" + GetParam()),
                                       ModelOptions{false, kernels::DType::F32, seed}, nullptr);
    }

    GenerateReport run() {
        GenerateReport report;
        Generator(*model_, nullptr, generate_).run(requests_, report, {});
        return report;
    }

    void expectPlain(const GenerateReport& report, const char* what) {
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            EXPECT_EQ(report.results[i].ids, plain_.results[i].ids) << what << ", request " << i;
        }
    }

    /// Serves the requests in a batch, and expects the plain answers.
    SpeculationCounts serve(const BatchOptions& options) {
        BatchEngine engine(*model_, nullptr, options);
        std::vector<ArrivingRequest> arriving;
        for (const GenerateRequest& request : requests_) {
            arriving.push_back({request, 0, {}});
        }
        replayRequests(engine, *context_, std::move(arriving));
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            EXPECT_EQ(engine.result(static_cast<std::int32_t>(i)).result.ids, plain_.results[i].ids) << i;
        }
        return engine.speculation();
    }

    ModelDrafterOptions drafterOptions() const {
        ModelDrafterOptions options;
        options.cache.dtype = kernels::DType::F32;
        options.draftTokens = 4;
        return options;
    }

    StepSink sink_;
    std::unique_ptr<kernels::Context> context_;
    std::unique_ptr<Model> model_;
    GenerateOptions generate_;
    std::vector<GenerateRequest> requests_;
    GenerateReport plain_;
};

TEST_P(GpuSpeculation, AnswersAreThoseOfPlainDecoding) {
    NgramDrafter ngram({1, 3});
    generate_.speculation = {&ngram, 5};
    const GenerateReport lookedUp = run();
    expectPlain(lookedUp, "n-gram look-up");
    EXPECT_GT(lookedUp.speculation.drafted, 0);

    const std::unique_ptr<Model> twin = makeModel(0);
    ModelDrafter same(*twin, drafterOptions());
    generate_.speculation = {&same, 4};
    const GenerateReport drafted = run();
    expectPlain(drafted, "the model itself");
    EXPECT_GT(drafted.speculation.acceptanceRate(), 0.95);
    EXPECT_LT(drafted.decodeSteps * 3, plain_.decodeSteps * 2);

    const std::unique_ptr<Model> stranger = makeModel(5);
    ModelDrafter other(*stranger, drafterOptions());
    generate_.speculation = {&other, 4};
    expectPlain(run(), "another model");
}

TEST_P(GpuSpeculation, StepsThatCheckDraftsReplayGraphs) {
    requests_.resize(1);
    requests_[0].maxNewTokens = 200;
    plain_ = run();
    engine::test::KnowingDrafter drafter(plain_.results);
    for (const std::int64_t tokens : {3, 5, 8}) {
        generate_.speculation = {&drafter, tokens};
        sink_.replays.clear();
        const GenerateReport report = run();
        expectPlain(report, "one request");
        EXPECT_GT(report.speculation.checkSteps, report.speculation.plainSteps) << tokens;
        // A few kinds of steps, of which the first two each are no replays; wider block tables are others.
        EXPECT_GT(sink_.replays["decode"], report.decodeSteps - 30) << tokens;
        EXPECT_GT(sink_.replays["decode"], report.speculation.plainSteps) << "so some of them checked drafts";
        EXPECT_GT(report.speculation.accepted, 0);
        EXPECT_LT(report.speculation.accepted, report.speculation.drafted);
    }
}

TEST_P(GpuSpeculation, StepsOfSeveralRequestsAreFilledAndReplayGraphs) {
    for (GenerateRequest& request : requests_) {
        request.maxNewTokens += 100;
    }
    plain_ = run();
    engine::test::KnowingDrafter drafter(plain_.results);
    generate_.speculation = {&drafter, 4};
    sink_.replays.clear();
    const GenerateReport report = run();
    expectPlain(report, "together");
    EXPECT_GT(report.speculation.accepted, 100);
    EXPECT_GT(sink_.replays["decode"], 0);

    BatchOptions options;
    options.cache.dtype = kernels::DType::F32;
    options.scheduler.slots = 3;
    options.speculation = {&drafter, 4};
    sink_.replays.clear();
    const SpeculationCounts counts = serve(options);
    EXPECT_GT(sink_.replays["decode"], counts.plainSteps) << "so some of them checked drafts";
}

TEST_P(GpuSpeculation, ADraftModelsStepsReplayGraphs) {
    requests_.resize(1);
    requests_[0].maxNewTokens = 200;
    plain_ = run();
    const std::unique_ptr<Model> twin = makeModel(0);
    ModelDrafter drafter(*twin, drafterOptions());
    generate_.speculation = {&drafter, 4};
    sink_.replays.clear();
    const GenerateReport report = run();
    expectPlain(report, "the model itself");
    // Each draft is a step over two tokens and three steps over one, which are replays but for the first ones.
    EXPECT_GT(sink_.replays["draft"], 3 * report.speculation.checkSteps);
    EXPECT_GT(sink_.replays["decode"], report.speculation.checkSteps / 2);
}

TEST_P(GpuSpeculation, BatchesGiveThoseAnswersToo) {
    const std::unique_ptr<Model> twin = makeModel(0);
    ModelDrafter drafter(*twin, drafterOptions());
    BatchOptions options;
    options.cache.dtype = kernels::DType::F32;
    options.cache.pageTokens = 8;
    options.scheduler.slots = 4;
    options.speculation = {&drafter, 4};
    const SpeculationCounts counts = serve(options);
    EXPECT_GT(counts.acceptanceRate(), 0.9);
}

INSTANTIATE_TEST_SUITE_P(Families, GpuSpeculation, ::testing::Values("llama", "gpt-oss", "gemma2"),
                         [](const auto& family) { return family.param == "gpt-oss" ? "gpt_oss" : family.param; });

} // namespace
} // namespace vitrine::gpu
