// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Scores beside logits that transformers made, and beside what rl finds.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>

#include "base/resource_path.h"
#include "engine/rl/policy/rollouts.h"
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
    for (const auto& [method, dtype] :
         {std::pair{"lora", "float32"}, std::pair{"lora", "bfloat16"}, std::pair{"full", "bfloat16"}}) {
        const Json scoring =
            run(scoreOf("llama", part, {{"score_tensor", "old_logprobs"}, {"output", out}, {"dtype", dtype}}));
        const Json more = {{"method", method}, {"dtype", dtype}};
        Json policy = experimentOf("llama", {{"rollouts", part}});
        policy.update(more);
        const Json own = run(policy);
        policy["rollouts"] = out;
        const Json scored = run(policy);
        EXPECT_EQ(scored["losses"], own["losses"]) << "the same kernels, to the bit, " << more;
        EXPECT_EQ(scored["mean_ratio"][0], 1.0) << more;
        EXPECT_NEAR(scoring["mean_entropy"].get<double>(), own["entropy"][0].get<double>(), 1e-6) << more;
    }
    EXPECT_EQ(test::readTensor<float>(out, "rollout_logprobs"), test::readTensor<float>(part, "rollout_logprobs"));
}

TEST_F(ScoreRun, WideMastersOfAPolicyChangeRoundingOnly) {
    const std::string file = fixture("grpo-llama/rollouts.safetensors");
    run(scoreOf("llama", file, {{"score_tensor", "old_logprobs"}, {"output", at("scored.safetensors")}}));
    const Json full = run(experimentOf("llama", {{"rollouts", at("scored.safetensors")}, {"updates", 1}}));
    EXPECT_NEAR(full["mean_ratio"][0].get<double>(), 1, 1e-6);
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
    const Json plain = run(scoreOf("llama", file)), flat = run(scoreOf("llama", file, {{"temperature", 100}}));
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

TEST_F(ScoreRun, ARowIsTheSameAloneAndBesideOthersOfItsPrompt) {
    std::ofstream(at("rows.jsonl")) << R"({"tokens": [5, 9, 200, 31, 44], "trained": [0, 0, 0, 1, 1]})" << '\n'
                                    << R"({"tokens": [7, 9, 11], "trained": [1, 0, 0]})" << '\n'
                                    << R"({"tokens": [5, 9, 200, 77, 12, 8, 3], "trained": [0, 0, 0, 1, 0, 1, 0]})"
                                    << '\n'
                                    << R"({"tokens": [5, 9, 200, 31, 44], "trained": [0, 0, 0, 1, 1]})" << '\n';
    const Json shared = run(scoreOf("llama", at("rows.jsonl"), {{"output", at("shared.safetensors")}}));
    const Json apart =
        run(scoreOf("llama", at("rows.jsonl"), {{"share_prompts", false}, {"output", at("apart.safetensors")}}));
    ASSERT_EQ(shared["rows"].size(), 4U) << "duplicates and rows that nothing counts of are rows";
    std::vector<std::int64_t> tokens;
    for (std::size_t row = 0; row < 4; ++row) {
        tokens.push_back(shared["rows"][row]["tokens"]);
        EXPECT_NEAR(shared["rows"][row]["logprob"].get<double>(), apart["rows"][row]["logprob"].get<double>(), 1e-4);
        EXPECT_NEAR(shared["rows"][row]["entropy"].get<double>(), apart["rows"][row]["entropy"].get<double>(), 1e-4);
    }
    EXPECT_EQ(tokens, (std::vector<std::int64_t>{2, 0, 2, 2}));
    EXPECT_NEAR(shared["rows"][3]["logprob"].get<double>(), shared["rows"][0]["logprob"].get<double>(), 1e-4);
    EXPECT_EQ(shared["rows"][1]["logprob"], 0.0);
    EXPECT_EQ(test::readTensor<std::int32_t>(at("shared.safetensors"), "scored"),
              (std::vector<std::int32_t>{0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, //
                                         0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0}));
    EXPECT_EQ(test::readTensor<std::int32_t>(at("shared.safetensors"), "lengths"),
              (std::vector<std::int32_t>{5, 3, 7, 5}));
    const auto values = test::readTensor<float>(at("shared.safetensors"), "logprobs");
    EXPECT_EQ(values[18], 0) << "between two tokens that count";
    EXPECT_LT(values[19], 0);
}

TEST_F(ScoreRun, ConversationsCountTheAnswers) {
    std::ofstream(at("chats.json"))
        << R"([{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "A page."},)"
        << R"( {"role": "user", "content": "And now?"}, {"role": "assistant", "content": "Another page."}]},)"
        << R"( {"prompt": "A page is", "completion": " long."}])";
    const Json model = {{"model", base::resourcePath("models/vitrine-demo")}};
    const Json out = run(scoreOf("llama", at("chats.json"), model));
    Json train = {{"vitrine", 1}, {"workload", "finetune"},  {"backend", "cpu"}, {"dtype", "float32"},
                  {"steps", 1},   {"data", at("chats.json")}};
    train.update(model);
    const Json trained = run(train);
    EXPECT_EQ(out["rows"].size(), 2U);
    EXPECT_EQ(out["scored_tokens"], trained["predicted_tokens"]);
    EXPECT_NEAR(-out["mean_logprob"].get<double>(), trained["losses"][0].get<double>(), 1e-4);
}

TEST_F(ScoreRun, TheAdapterCountsAsWhereItIsMerged) {
    const std::string file = fixture("llama-lora/batch.safetensors");
    const std::string adapter = fixture("llama-lora/adapter-end");
    const std::vector<double> losses = test::numbersOf(fixture("llama-lora/losses.json"), "loss");
    const Json start = run(scoreOf("llama", file, {{"adapter", fixture("llama-lora/adapter-start")}}));
    EXPECT_NEAR(-start["mean_logprob"].get<double>(), losses.front(), 1e-3) << "PyTorch";
    const Json with = run(scoreOf("llama", file, {{"adapter", adapter}}));
    EXPECT_GT(with["mean_logprob"].get<double>(), start["mean_logprob"].get<double>() + 0.01);
    run({{"vitrine", 1},
         {"workload", "finetune"},
         {"backend", "cpu"},
         {"model", fixture("llama")},
         {"lr", 0},
         {"adapter", adapter},
         {"steps", 1},
         {"tokens_file", file},
         {"merge", "bf16"},
         {"output", at("out")}});
    Json merged = scoreOf("llama", file);
    merged["model"] = at("out/merged");
    EXPECT_NEAR(run(merged)["mean_logprob"].get<double>(), with["mean_logprob"].get<double>(), 5e-3);
}

TEST_F(ScoreRun, TheOutputIsAFileOfRollouts) {
    const std::string file = fixture("grpo-llama/rollouts.safetensors");
    const std::string out = at("more.safetensors");
    run(scoreOf("llama", file, {{"score_tensor", "reference_logprobs"}, {"output", out}}));
    const Rollouts before = readRollouts(file, 512), after = readRollouts(out, 512);
    EXPECT_EQ(after.ids, before.ids);
    EXPECT_EQ(after.advantages, before.advantages);
    EXPECT_EQ(after.old, before.old);
    EXPECT_EQ(after.rollout, before.rollout);
    EXPECT_NE(after.reference, before.reference) << "replaced";
    ASSERT_EQ(after.reference.size(), before.reference.size());
    for (std::int64_t row = 0; row < after.rows; ++row) {
        const auto place = static_cast<std::size_t>(row);
        for (std::int64_t token = 0; token < after.width; ++token) {
            const bool scored = token >= after.promptLengths[place] && token < after.lengths[place];
            EXPECT_EQ(after.reference[static_cast<std::size_t>(row * after.width + token)] != 0, scored)
                << row << " " << token;
        }
    }
    EXPECT_EQ(run(experimentOf("llama", {{"rollouts", out}, {"method", "lora"}, {"kl", 0.05}}))["kl"][0], 0.0)
        << "to the bit";
    run(scoreOf("llama", file, {{"output", out}}));
    EXPECT_NE(SafetensorsFile::open(out)->find("logprobs"), nullptr) << "scores replace scores";
}

TEST_F(ScoreRun, PlansPriceRowsWithoutValues) {
    Json experiment = scoreOf("llama", fixture("grpo-llama/rollouts.safetensors"),
                              {{"plan", true}, {"device_profile", "h200"}, {"output", at("out.safetensors")}});
    experiment.erase("backend");
    const Json out = run(experiment);
    EXPECT_TRUE(out["fits"].get<bool>());
    EXPECT_GT(out["step_seconds_estimate"].get<double>(), 0);
    EXPECT_EQ(out["peak_by_category"].value("gradients", 0), 0);
    EXPECT_FALSE(out.contains("rows"));
    EXPECT_FALSE(std::filesystem::exists(at("out.safetensors")));
    experiment["vram_budget"] = "100KiB";
    EXPECT_FALSE(run(experiment)["fits"].get<bool>());
}

/// Scores a file of rows with one tensor in place of that of test::fourRollouts().
class ScoreFaults : public ScoreRun {
protected:
    template <class Number>
    std::string with(const std::string& name, const std::vector<std::int64_t>& shape,
                     const std::vector<Number>& values) {
        return failure(
            scoreOf("llama", folder_.write("rows.safetensors", test::fourRollouts().set(name, shape, values).bytes())));
    }
    std::string ofText(const std::string& text) { return failure(scoreOf("llama", folder_.write("rows.jsonl", text))); }
};

TEST_F(ScoreFaults, NameTheTensorAndTheRow) {
    EXPECT_THAT(with<std::int32_t>("lengths", {4}, {4, 2, 3, 4}),
                HasSubstr("rows.safetensors: lengths: row 1: 2 leaves no answer"));
    EXPECT_THAT(with<std::int32_t>("lengths", {4}, {4, 7, 3, 4}), HasSubstr("lengths: row 1: 7 is not from 1 to 6"));
    EXPECT_THAT(with<std::int32_t>("prompt_lengths", {4}, {2, 3, 0, 3}), HasSubstr("prompt_lengths: row 2: 0"));
    EXPECT_THAT(with<float>("prompt_lengths", {4}, {2, 3, 2, 3}), HasSubstr("prompt_lengths: must be I32 or I64"));
    EXPECT_THAT(with<std::int32_t>("lengths", {3}, {4, 6, 3}), HasSubstr("lengths: has the shape (3)"));
    std::vector<std::int32_t> ids(24, 1);
    ids[13] = 512;
    EXPECT_THAT(with<std::int32_t>("input_ids", {4, 6}, ids), HasSubstr("input_ids: row 2: token 1: id 512"));
    EXPECT_THAT(with<std::int32_t>("input_ids", {24}, ids), HasSubstr("input_ids: has the shape (24)"));
}

TEST_F(ScoreFaults, NameTheLine) {
    EXPECT_THAT(ofText("{\"tokens\": [1, 2]}\n{\"tokens\": [1, 512]}\n"), HasSubstr("rows.jsonl: line 2: "));
    EXPECT_THAT(ofText("{\"tokens\": [1, 2], \"trained\": [1, 0]}\n"), HasSubstr("no row has a token that is trained"));
    EXPECT_THAT(ofText("{\"text\": \"Hello\"}\n"), HasSubstr("rows.jsonl: line 1: "));
    EXPECT_THAT(ofText(""), HasSubstr("rows.jsonl: holds no row"));
}

TEST_F(ScoreRun, FaultsAreOneSentence) {
    Json none = scoreOf("llama", "");
    none.erase("data");
    EXPECT_THAT(failure(none), HasSubstr("data: missing; name a safetensors file"));
    EXPECT_THAT(failure(scoreOf("llama", without({"input_ids"}))), HasSubstr("a file of rows has input_ids, and may"));
    EXPECT_THAT(failure(scoreOf("llama", without({}), {{"score_tensor", "values"}})), HasSubstr("score_tensor"));
    EXPECT_THAT(failure(scoreOf("llama", at("missing.safetensors"))), HasSubstr("missing.safetensors"));
    const std::string file = fixture("grpo-llama/rollouts.safetensors");
    EXPECT_THAT(failure(scoreOf("llama", file, {{"backend", "meta"}})), HasSubstr("there are no scores"));
    const std::string part = without({});
    EXPECT_THAT(failure(scoreOf("llama", part, {{"output", part}})),
                HasSubstr("part.safetensors is the file of data too"));
}

} // namespace
} // namespace vitrine::engine
