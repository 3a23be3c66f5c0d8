// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Log-probabilities of the tokens of a prompt, however its reading is cut, and answers of a least length.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/generation/batch_replay.h"
#include "tests/engine/model/broken_model.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::engine {
namespace {

constexpr std::int32_t kBestScores = 3;

class ScoreRig {
public:
    explicit ScoreRig(const std::string& name = "synthetic:tiny-llama")
        : context_(test::makeContext(kernels::Backend::Cpu)), source_(openModel(name)),
          model_(std::make_unique<Model>(*context_, source_, ModelOptions{}, nullptr)) {
        options.cache.dtype = kernels::DType::F32;
        options.cache.pageTokens = 4;
        options.scheduler.slots = 3;
        options.scheduler.tokenBudget = 64;
    }

    GenerateRequest request(std::size_t length, std::int64_t newTokens, std::int32_t salt, bool scores = true) const {
        GenerateRequest out;
        for (std::size_t i = 0; i < length; ++i) {
            out.prompt.push_back(static_cast<std::int32_t>((31 * i + static_cast<std::size_t>(salt) * 7 + 1) %
                                                           static_cast<std::size_t>(source_.config.vocab)));
        }
        out.maxNewTokens = newTokens;
        out.scoresPrompt = scores;
        out.topLogprobs = kBestScores;
        return out;
    }

    std::vector<BatchResult> serve(const std::vector<GenerateRequest>& requests) {
        BatchEngine engine(*model_, nullptr, options);
        std::vector<ArrivingRequest> arriving;
        for (const GenerateRequest& each : requests) {
            arriving.push_back({each, 0, {}});
        }
        replayRequests(engine, *context_, std::move(arriving));
        std::vector<BatchResult> out;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            out.push_back(engine.result(static_cast<std::int32_t>(i)));
        }
        preemptions = engine.counts().preemptions;
        return out;
    }

    /// Log softmax of the logits of one pass over all tokens.
    std::vector<std::vector<double>> reference(const std::vector<std::int32_t>& tokens) {
        const auto vocab = static_cast<std::size_t>(source_.config.vocab);
        std::vector<float> logits(tokens.size() * vocab);
        StepBatch batch;
        batch.logits = StepLogits::All;
        batch.logitsOut = logits.data();
        batch.sequences.push_back({0, tokens});
        model_->step(batch);
        std::vector<std::vector<double>> out;
        for (std::size_t row = 0; row < tokens.size(); ++row) {
            std::vector<double>& values =
                out.emplace_back(logits.begin() + static_cast<std::ptrdiff_t>(row * vocab),
                                 logits.begin() + static_cast<std::ptrdiff_t>((row + 1) * vocab));
            double sum = 0;
            for (const double value : values) {
                sum += std::exp(value);
            }
            for (double& value : values) {
                value -= std::log(sum);
            }
        }
        return out;
    }

    BatchOptions options;
    std::int64_t preemptions = 0; ///< of the last call of serve()

private:
    std::unique_ptr<kernels::Context> context_;
    ModelSource source_;
    std::unique_ptr<Model> model_;
};

void expectSameScores(const GenerateResult& a, const GenerateResult& b, const std::string& what) {
    EXPECT_EQ(a.ids, b.ids) << what;
    EXPECT_EQ(a.logprobs, b.logprobs) << what;
    ASSERT_EQ(a.promptScores.size(), b.promptScores.size()) << what;
    for (std::size_t i = 0; i < a.promptScores.size(); ++i) {
        EXPECT_EQ(a.promptScores[i].logprob, b.promptScores[i].logprob) << what << ", token " << i + 1;
        EXPECT_EQ(a.promptScores[i].top, b.promptScores[i].top) << what << ", token " << i + 1;
    }
}

TEST(PromptScores, AreTheLogSoftmaxOfOnePass) {
    ScoreRig rig;
    const GenerateRequest request = rig.request(30, 2, 5);
    const std::vector<std::vector<double>> wanted = rig.reference(request.prompt);
    const GenerateResult result = rig.serve({request})[0].result;
    ASSERT_EQ(result.promptScores.size(), 29U);
    for (std::size_t i = 0; i < result.promptScores.size(); ++i) {
        const PromptScore& score = result.promptScores[i];
        EXPECT_NEAR(static_cast<double>(score.logprob), wanted[i][static_cast<std::size_t>(request.prompt[i + 1])],
                    1e-4);
        ASSERT_EQ(score.top.size(), static_cast<std::size_t>(kBestScores));
        EXPECT_NEAR(static_cast<double>(score.top[0].second), *std::ranges::max_element(wanted[i]), 1e-4);
        for (const auto& [id, logprob] : score.top) {
            EXPECT_NEAR(static_cast<double>(logprob), wanted[i][static_cast<std::size_t>(id)], 1e-4);
            EXPECT_TRUE(id != request.prompt[i + 1] || logprob == score.logprob) << "the same number to the last bit";
        }
    }
    GenerateRequest plain = request;
    plain.scoresPrompt = false;
    const GenerateResult without = rig.serve({plain})[0].result;
    EXPECT_EQ(without.ids, result.ids) << "the answer is the same";
    EXPECT_TRUE(without.promptScores.empty());
    EXPECT_TRUE(rig.serve({rig.request(1, 2, 5)})[0].result.promptScores.empty());
}

TEST(PromptScores, DoNotDependOnPiecesPrefixesNeighboursAndPreemption) {
    ScoreRig rig;
    std::vector<GenerateRequest> requests = {rig.request(30, 8, 5),         rig.request(30, 8, 5),
                                             rig.request(17, 12, 9, false), rig.request(25, 9, 3),
                                             rig.request(30, 1, 5),         rig.request(2, 16, 4)};
    requests[3].topLogprobs = 0;
    std::vector<GenerateResult> alone;
    for (const GenerateRequest& each : requests) {
        alone.push_back(rig.serve({each})[0].result);
    }
    const auto expectSame = [&](const std::string& what) {
        const std::vector<BatchResult> results = rig.serve(requests);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            expectSameScores(results[i].result, alone[i], fmt::format("{}, request {}", what, i));
            EXPECT_TRUE(!requests[i].scoresPrompt || results[i].sharedTokens == 0) << "what is shared has no logits";
        }
    };
    for (const std::int64_t budget : {64, 5, 1}) {
        rig.options.scheduler.tokenBudget = budget;
        for (const bool shares : {false, true}) {
            rig.options.cache.sharePrefixes = shares;
            expectSame(fmt::format("budget {}, shares {}", budget, shares));
        }
    }
    rig.options.cache.sharePrefixes = false;
    rig.options.cache.poolPages = 14;
    for (const std::int64_t budget : {64, 7}) {
        rig.options.scheduler.tokenBudget = budget;
        for (const Preemption preemption : {Preemption::Recompute, Preemption::Swap}) {
            rig.options.scheduler.preemption = preemption;
            rig.options.scheduler.swapPages = 1000;
            expectSame(fmt::format("budget {}, preemption {}", budget, static_cast<int>(preemption)));
            EXPECT_GT(rig.preemptions, 0);
        }
    }
}

TEST(PromptScores, ASlidingModelScoresInPiecesToo) {
    for (const char* name : {"synthetic:tiny-gpt-oss", "synthetic:tiny-gemma2"}) {
        ScoreRig rig(name);
        const GenerateRequest request = rig.request(40, 3, 2);
        const GenerateResult whole = rig.serve({request})[0].result;
        EXPECT_EQ(whole.promptScores.size(), 39U);
        rig.options.scheduler.tokenBudget = 6;
        rig.options.cache.sharePrefixes = true;
        expectSameScores(rig.serve({request, request})[1].result, whole, name);
    }
}

TEST(PromptScores, APromptWithBrokenNumbersFailsAlone) {
    const vitrine::test::TempFolder folder;
    test::copyWithBrokenRow("llama", folder.file("broken"), "model.embed_tokens.weight", 5);
    ScoreRig rig(folder.file("broken"));
    rig.options.survivesBrokenNumbers = true;
    GenerateRequest bad = rig.request(4, 3, 1);
    bad.prompt = {4, 5, 6, 7};
    GenerateRequest good = bad;
    good.prompt = {1, 2, 3};
    const std::vector<BatchResult> results = rig.serve({good, bad});
    EXPECT_EQ(results[0].result.finish, FinishReason::Length);
    EXPECT_EQ(results[0].result.promptScores.size(), 2U);
    EXPECT_EQ(results[1].result.finish, FinishReason::Failed);
    EXPECT_FALSE(results[1].failure.empty());
}

TEST(PromptScores, AStepHasAsManyScoredTokensAsItsBudget) {
    PageBook book({{.pageTokens = 4, .pages = 100}}, false);
    SchedulerOptions options;
    options.slots = 4;
    options.tokenBudget = 64;
    options.scoreBudget = 10;
    Scheduler scheduler(options, book);
    const std::vector<std::int32_t> prompt(25, 1);
    scheduler.add(prompt, 2, true);
    scheduler.add(prompt, 2, true);
    scheduler.add(prompt, 2, false);
    std::int64_t scored = 0;
    for (int step = 0; scored < 50; ++step) {
        ASSERT_LT(step, 20);
        std::int64_t now = 0;
        for (const ScheduledRow& row : scheduler.next().rows) {
            now += row.request < 2 && row.kind == RowKind::Prefill ? row.tokens : 0;
            EXPECT_TRUE(row.request != 2 || row.tokens == (step == 0 ? 25 : 1)) << "others are not cut";
            book.commit(row.sequence, row.tokens);
        }
        EXPECT_LE(now, 10);
        scored += now;
    }
}

TEST(PromptScores, AnAnswerHasItsLeastLength) {
    ScoreRig rig;
    GenerateRequest request = rig.request(9, 20, 3, false);
    request.topLogprobs = 0;
    const std::vector<std::int32_t> plain = rig.serve({request})[0].result.ids;
    request.stopTokens = {plain[2]};
    const std::size_t stopped = rig.serve({request})[0].result.ids.size();
    ASSERT_LE(stopped, 3U);
    request.minNewTokens = 7;
    for (const std::int64_t budget : {64, 1}) {
        rig.options.scheduler.tokenBudget = budget;
        const std::vector<std::int32_t> ids = rig.serve({request})[0].result.ids;
        EXPECT_GE(ids.size(), 7U);
        const auto end = ids.begin() + 7;
        EXPECT_EQ(std::find(ids.begin(), end, plain[2]), end);
    }
    request.minNewTokens = static_cast<std::int64_t>(stopped) - 1;
    EXPECT_EQ(rig.serve({request})[0].result.ids.size(), stopped) << "from there on it may end";
}

} // namespace
} // namespace vitrine::engine
