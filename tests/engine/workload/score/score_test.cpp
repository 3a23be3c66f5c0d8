// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Scores beside logits that transformers made, and beside what rl finds.

#include <cmath>
#include <fstream>
#include <gmock/gmock.h>

#include "tests/engine/workload/rl/policy_testing.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using test::fixture;
using testing::HasSubstr;

class ScoreRun : public test::PolicyRun {
protected:
    static Json scoreOf(const std::string& model, const std::string& file, const Json& more = Json::object()) {
        Json experiment = {{"vitrine", 1},       {"workload", "score"},     {"backend", "cpu"},
                           {"dtype", "float32"}, {"model", fixture(model)}, {"data", file}};
        experiment.update(more);
        return experiment;
    }
};

/// log softmax of a row of logits at a token, and the entropy.
std::pair<double, double> scoreOfRow(const float* logits, std::size_t vocab, std::int32_t token) {
    double best = -1e30, sum = 0, mean = 0;
    for (std::size_t i = 0; i < vocab; ++i) {
        best = std::max(best, static_cast<double>(logits[i]));
    }
    for (std::size_t i = 0; i < vocab; ++i) {
        const double z = static_cast<double>(logits[i]) - best;
        sum += std::exp(z);
        mean += std::exp(z) * z;
    }
    return {static_cast<double>(logits[token]) - best - std::log(sum), std::log(sum) - mean / sum};
}

TEST_F(ScoreRun, AreThoseOfTheLogitsOfTransformers) {
    for (const char* model : {"llama", "gpt-oss-bf16", "gemma2"}) {
        const std::string expected = fixture(std::string(model) + "/expected.safetensors");
        const std::string out = at(std::string(model) + ".safetensors");
        const Json result = run(scoreOf(model, expected, {{"output", out}}));
        const auto ids = test::readIds(expected, "input_ids");
        const auto logits = test::readTensor<float>(expected, "logits");
        const auto logprobs = test::readTensor<float>(out, "logprobs");
        const auto entropies = test::readTensor<float>(out, "entropies");
        const std::size_t vocab = logits.size() / ids.size();
        const std::size_t rows = result["rows"].size(), width = ids.size() / rows;
        double sum = 0;
        for (std::size_t place = 0; place < ids.size(); ++place) {
            if (place % width == 0) {
                EXPECT_EQ(logprobs[place], 0) << "nothing is before the first token";
                continue;
            }
            const auto [logprob, entropy] = scoreOfRow(logits.data() + (place - 1) * vocab, vocab, ids[place]);
            EXPECT_NEAR(logprobs[place], logprob, 2e-3) << model << " " << place;
            EXPECT_NEAR(entropies[place], entropy, 2e-3) << model << " " << place;
            sum += static_cast<double>(logprobs[place]);
        }
        const auto tokens = static_cast<double>(ids.size() - rows);
        EXPECT_EQ(result["scored_tokens"], ids.size() - rows);
        EXPECT_NEAR(result["mean_logprob"].get<double>(), sum / tokens, 1e-9);
        EXPECT_NEAR(result["perplexity"].get<double>(), std::exp(-sum / tokens), 1e-6);
    }
}

TEST_F(ScoreRun, AreWhatAPolicyUpdateFinds) {
    const std::string part = without({"old_logprobs", "reference_logprobs"});
    const std::string out = at("scored.safetensors");
    run(scoreOf("llama", part, {{"score_tensor", "old_logprobs"}, {"output", out}}));
    const Json own = run(experimentOf("llama", {{"rollouts", part}}));
    const Json scored = run(experimentOf("llama", {{"rollouts", out}}));
    EXPECT_EQ(scored["losses"], own["losses"]) << "the same kernels, to the bit";
    EXPECT_EQ(scored["mean_ratio"][0], 1.0);
    EXPECT_EQ(test::readTensor<float>(out, "rollout_logprobs"), test::readTensor<float>(part, "rollout_logprobs"));
}

TEST_F(ScoreRun, SharedPromptsAndMicroBatchesChangeRoundingOnly) {
    const std::string file = fixture("grpo-qwen3-moe/rollouts.safetensors");
    const Json whole = run(scoreOf("qwen3-moe", file));
    for (const Json& more : {Json{{"share_prompts", false}}, Json{{"batch", 1}}, Json{{"loss_chunks", "4"}}}) {
        const Json other = run(scoreOf("qwen3-moe", file, more));
        for (std::size_t row = 0; row < whole["rows"].size(); ++row) {
            EXPECT_NEAR(other["rows"][row]["logprob"].get<double>(), whole["rows"][row]["logprob"].get<double>(), 1e-4);
        }
    }
}

TEST_F(ScoreRun, TemperatureDividesLogits) {
    const std::string file = fixture("grpo-llama/rollouts.safetensors");
    const Json plain = run(scoreOf("llama", file)), flat = run(scoreOf("llama", file, {{"temperature", 1000}}));
    EXPECT_NEAR(flat["mean_entropy"].get<double>(), std::log(512.0), 1e-3);
    EXPECT_LT(plain["mean_entropy"].get<double>(), flat["mean_entropy"].get<double>());
    EXPECT_THAT(failure(scoreOf("llama", file, {{"temperature", 0}})), HasSubstr("temperature: is 0"));
}

TEST_F(ScoreRun, TextRowsCountWhatWouldBeTrained) {
    std::ofstream(at("rows.jsonl")) << R"({"tokens": [5, 9, 200, 31]})" << '\n' << R"({"tokens": [7, 9]})" << '\n';
    const Json out = run(scoreOf("llama", at("rows.jsonl"), {{"output", at("out.safetensors")}}));
    ASSERT_EQ(out["rows"].size(), 2U);
    EXPECT_EQ(out["rows"][0]["tokens"], 3);
    EXPECT_EQ(out["rows"][1]["tokens"], 1);
    EXPECT_EQ(test::readTensor<std::int32_t>(at("out.safetensors"), "scored"),
              (std::vector<std::int32_t>{0, 1, 1, 1, 0, 1, 0, 0}));
    EXPECT_EQ(test::readTensor<std::int32_t>(at("out.safetensors"), "input_ids"),
              (std::vector<std::int32_t>{5, 9, 200, 31, 7, 9, 0, 0}));
}

TEST_F(ScoreRun, FaultsAreOneSentence) {
    EXPECT_THAT(failure(scoreOf("llama", at("missing.safetensors"))), HasSubstr("missing.safetensors"));
    EXPECT_THAT(failure(scoreOf("llama", without({"input_ids"}))), HasSubstr("input_ids: missing"));
    const std::string file = fixture("grpo-llama/rollouts.safetensors");
    EXPECT_THAT(failure(scoreOf("llama", file, {{"backend", "meta"}})), HasSubstr("there are no scores"));
    const std::string part = without({});
    EXPECT_THAT(failure(scoreOf("llama", part, {{"output", part}})), HasSubstr("output"));
}

} // namespace
} // namespace vitrine::engine
