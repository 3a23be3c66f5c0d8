// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The log-probabilities with which an answer's tokens were drawn, against a second pass over the whole answer.

#include <algorithm>
#include <gtest/gtest.h>

#include "engine/generation/batch_replay.h"
#include "engine/generation/ngram_drafter.h"
#include "tests/engine/generation/knowing_drafter.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/kernels/ops/sampling/draw_reference.h"

namespace vitrine::engine {
namespace {

class DrawRig {
public:
    explicit DrawRig(const std::string& name = "synthetic:tiny-llama", kernels::Backend backend = kernels::Backend::Cpu)
        : context(test::makeContext(backend)), source(openModel(name)),
          model(std::make_unique<Model>(*context, source, ModelOptions{}, nullptr)) {
        options.cache.dtype = kernels::DType::F32;
        options.cache.pageTokens = 4;
        options.scheduler.slots = 3;
        options.scheduler.tokenBudget = 64;
    }

    std::vector<GenerateResult> serve(const std::vector<GenerateRequest>& requests) {
        BatchEngine engine(*model, nullptr, options);
        std::vector<ArrivingRequest> arriving;
        for (const GenerateRequest& each : requests) {
            arriving.push_back({each, 0, {}});
        }
        replayRequests(engine, *context, std::move(arriving));
        std::vector<GenerateResult> out;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            out.push_back(engine.result(static_cast<std::int32_t>(i)).result);
        }
        counts = engine.counts();
        speculated = engine.speculation();
        return out;
    }

    /// Every value against the logits of one pass over prompt and answer.
    void expectDraws(const GenerateRequest& request, const GenerateResult& result) {
        ASSERT_EQ(result.drawLogprobs.size(), result.ids.size());
        ASSERT_EQ(result.temperedLogprobs.size(), result.ids.size());
        std::vector<std::int32_t> tokens = request.prompt;
        tokens.insert(tokens.end(), result.ids.begin(), result.ids.end());
        const std::vector<float> logits = test::stepLogits(*model, tokens);
        const auto vocab = static_cast<std::ptrdiff_t>(source.config.vocab);
        for (std::size_t i = 0; i < result.ids.size(); ++i) {
            const std::size_t known = request.prompt.size() + i;
            const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(known - 1) * vocab;
            kernels::SampleParameters row;
            row.temperature = request.sampling.temperature;
            row.topK = request.sampling.topK;
            row.topP = request.sampling.topP;
            row.repetitionPenalty = request.sampling.repetitionPenalty;
            row.history = tokens.data();
            row.historyLength = static_cast<std::int64_t>(known);
            row.promptTokens = static_cast<std::int64_t>(request.prompt.size());
            const kernels::testing::DrawReference wanted =
                kernels::testing::drawReference(std::vector<double>(begin, begin + vocab), row, result.ids[i]);
            EXPECT_NEAR(static_cast<double>(result.drawLogprobs[i]), wanted.drawn, 1e-4) << "token " << i;
            EXPECT_NEAR(static_cast<double>(result.temperedLogprobs[i]), wanted.tempered, 1e-4) << "token " << i;
        }
    }

    std::unique_ptr<kernels::Context> context;
    ModelSource source;
    std::unique_ptr<Model> model;
    BatchOptions options;
    BatchCounts counts;           ///< of the last call of serve()
    SpeculationCounts speculated; ///< the same
};

/// Greedy, by temperature alone, with each filter, with a penalty; the last one does not ask.
std::vector<GenerateRequest> requestsToDraw() {
    std::vector<GenerateRequest> out(7);
    for (std::size_t i = 0; i < out.size(); ++i) {
        for (std::size_t t = 0; t < 3 + 7 * i % 23; ++t) {
            out[i].prompt.push_back(static_cast<std::int32_t>((31 * t + i * 7 + 1) % 200));
        }
        out[i].maxNewTokens = 20 + static_cast<std::int64_t>(i);
        out[i].sampling.temperature = i == 0 ? 0.0F : 0.7F;
        out[i].sampling.seed = 3;
        out[i].samplingNumber = static_cast<std::uint32_t>(i);
        out[i].drawLogprobs = i + 1 < out.size();
    }
    out[2].sampling.topP = 0.9F;
    out[3].sampling.topK = 20;
    out[4].sampling.repetitionPenalty = 1.2F;
    out[5].sampling.temperature = 1;
    return out;
}

void expectSameDraws(const std::vector<GenerateResult>& results, const std::vector<GenerateResult>& wanted,
                     const std::string& what) {
    ASSERT_EQ(results.size(), wanted.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(results[i].ids, wanted[i].ids) << what << ", request " << i;
        ASSERT_EQ(results[i].drawLogprobs.size(), wanted[i].drawLogprobs.size()) << what << ", request " << i;
        ASSERT_EQ(results[i].temperedLogprobs.size(), wanted[i].temperedLogprobs.size());
        for (std::size_t t = 0; t < results[i].drawLogprobs.size(); ++t) {
            EXPECT_NEAR(results[i].drawLogprobs[t], wanted[i].drawLogprobs[t], 1e-4F) << what << ", request " << i;
            EXPECT_NEAR(results[i].temperedLogprobs[t], wanted[i].temperedLogprobs[t], 1e-4F) << what;
        }
    }
}

TEST(DrawLogprobsOfAnswers, AreThoseOfASecondPass) {
    for (const char* const name : {"synthetic:tiny-llama", "synthetic:tiny-gpt-oss"}) {
        SCOPED_TRACE(name);
        DrawRig rig(name);
        std::vector<GenerateRequest> requests = requestsToDraw();
        const std::vector<GenerateResult> results = rig.serve(requests);
        for (std::size_t i = 0; i + 1 < requests.size(); ++i) {
            SCOPED_TRACE(i);
            rig.expectDraws(requests[i], results[i]);
        }
        EXPECT_EQ(results[0].drawLogprobs, std::vector<float>(results[0].ids.size(), 0.0F)) << "greedy";
        EXPECT_EQ(results[0].temperedLogprobs, results[0].logprobs);
        EXPECT_EQ(results[5].temperedLogprobs, results[5].logprobs) << "at temperature 1";
        EXPECT_TRUE(results.back().drawLogprobs.empty()) << "it did not ask";
        EXPECT_TRUE(results.back().temperedLogprobs.empty());

        for (GenerateRequest& request : requests) {
            request.drawLogprobs = false;
        }
        const std::vector<GenerateResult> without = rig.serve(requests);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            EXPECT_EQ(without[i].ids, results[i].ids);
            EXPECT_EQ(without[i].logprobs, results[i].logprobs) << "request " << i;
            EXPECT_TRUE(without[i].drawLogprobs.empty());
        }
    }
}

TEST(DrawLogprobsOfAnswers, DoNotDependOnSpeculationPreemptionOrTheEngine) {
    DrawRig rig;
    const std::vector<GenerateRequest> requests = requestsToDraw();
    const std::vector<GenerateResult> plain = rig.serve(requests);
    GenerateOptions generate;
    generate.cache.dtype = kernels::DType::F32;
    GenerateReport report;
    Generator(*rig.model, nullptr, generate).run(requests, report, {});
    expectSameDraws(report.results, plain, "from the other engine");
    test::KnowingDrafter knowing(plain);
    NgramDrafter ngram({1, 3});
    for (Drafter* const drafter : {static_cast<Drafter*>(&knowing), static_cast<Drafter*>(&ngram)}) {
        rig.options.speculation = {drafter, 4};
        expectSameDraws(rig.serve(requests), plain, "with drafts");
        EXPECT_GT(rig.speculated.drafted, 0);
        EXPECT_TRUE(drafter != &knowing || rig.speculated.accepted > 0);
        EXPECT_LT(rig.speculated.accepted, rig.speculated.drafted);
    }
    rig.options.speculation = {};
    rig.options.cache.poolPages = 14;
    rig.options.scheduler.swapPages = 100;
    for (const Preemption preemption : {Preemption::Recompute, Preemption::Swap}) {
        rig.options.scheduler.preemption = preemption;
        expectSameDraws(rig.serve(requests), plain, "with few pages");
        EXPECT_GT(rig.counts.preemptions, 0);
    }
}

TEST(DrawLogprobsOfAnswers, ArePlannedToo) {
    for (const bool jumps : {false, true}) {
        DrawRig rig("synthetic:tiny-llama", kernels::Backend::Meta);
        rig.options.jumpEqualSteps = jumps;
        std::vector<GenerateRequest> requests = requestsToDraw();
        requests[1].maxNewTokens = 300;
        const std::vector<GenerateResult> results = rig.serve(requests);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const std::size_t wanted = requests[i].drawLogprobs ? results[i].ids.size() : 0;
            EXPECT_EQ(results[i].ids.size(), static_cast<std::size_t>(requests[i].maxNewTokens));
            EXPECT_EQ(results[i].drawLogprobs.size(), wanted) << "request " << i;
            EXPECT_EQ(results[i].temperedLogprobs.size(), wanted) << "request " << i;
        }
    }
}

} // namespace
} // namespace vitrine::engine
