// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Reinforcement learning whose answers the run samples itself.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using test::fixture;
using testing::HasSubstr;

class PolicyLoopRun : public testing::Test {
protected:
    static Json experimentOf(const Json& more = Json::object()) {
        Json experiment = {{"vitrine", 1},       {"workload", "rl"}, {"backend", "cpu"}, {"model", fixture("llama")},
                           {"prompt_length", 9}, {"method", "full"}, {"lr", 0.001},      {"dtype", "float32"},
                           {"steps", 3},         {"prompts", 4},     {"samples", 4},     {"max_new_tokens", 6},
                           {"ignore_eos", true}};
        experiment.update(more);
        return experiment;
    }
    static Json run(const Json& experiment, base::StopToken stop = {}, Json* partial = nullptr) {
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, std::move(stop), partial);
    }
    static std::string failure(const Json& experiment) {
        return test::failure([&] { run(experiment); });
    }
    std::string at(const std::string& name) const { return folder_.file(name); }
    static void expectSame(const Json& a, const Json& b) {
        for (const char* key : {"rewards", "losses", "grad_norms", "logprob_abs_diff", "mismatch_k3", "entropy",
                                "answer_tokens", "mean_ratio", "effective_sample_share", "eval_rewards"}) {
            EXPECT_EQ(a.value(key, Json()), b.value(key, Json())) << key;
        }
    }

    test::TempFolder folder_;
};

TEST_F(PolicyLoopRun, EachStepSamplesJudgesAndLearns) {
    const Json out = run(experimentOf({{"eval_every", 2}, {"eval_problems", 5}}));
    ASSERT_EQ(out["rewards"].size(), 3U);
    ASSERT_EQ(out["losses"].size(), 3U);
    for (std::size_t step = 0; step < 3; ++step) {
        EXPECT_GT(out["rewards"][step], 0.0);
        EXPECT_LT(out["rewards"][step], 1.0);
        EXPECT_EQ(out["answer_tokens"][step], 6.0);
        EXPECT_EQ(out["cut_share"][step], 1.0) << "none ends by itself";
        EXPECT_EQ(out["mean_ratio"][step], 1.0) << "answers are of the present weights";
        EXPECT_LT(out["logprob_abs_diff"][step], 1e-5) << "sampler and trainer compute the same";
        EXPECT_LT(out["logprob_max_diff"][step], 1e-4);
        EXPECT_GT(out["effective_sample_share"][step], 0.999);
        EXPECT_GT(out["phase_seconds"]["rollout"][step], 0.0);
        EXPECT_GT(out["phase_seconds"]["update"][step], 0.0);
        EXPECT_GT(out["grad_norms"][step], 0.0);
    }
    ASSERT_EQ(out["group_rewards"].size(), 3U);
    double sum = 0;
    for (const Json& reward : out["group_rewards"][1]) {
        sum += reward.get<double>();
    }
    EXPECT_NEAR(sum / 4, out["rewards"][1].get<double>(), 1e-9) << "groups have as many answers each";
    EXPECT_EQ(out["eval_reward_steps"], Json::array({0, 2, 3}));
    EXPECT_EQ(out["eval_rewards"].size(), 3U);
    EXPECT_EQ(out["rollout_weights"], "bf16");
}

TEST_F(PolicyLoopRun, AResultIsATextForPeople) {
    const Experiment spec = Experiment::parse(experimentOf({{"eval_every", 2}, {"eval_problems", 3}}), "experiment");
    const std::string text = resultText(spec, runExperiment(spec, {}, {}));
    for (const char* part : {"3 steps, judged by arbitrary rewards, sampled with bf16 weights", "evaluation: ",
                             "after step 0, ", "peak memory: rollout ", "step  reward", "after step 3: "}) {
        EXPECT_THAT(text, HasSubstr(part));
    }
    EXPECT_EQ(runName(spec), "rl, arbitrary prompts, full, llama");
}

TEST_F(PolicyLoopRun, SleepLeavesTheSameMemoryAfterEachStep) {
    const Json out = run(experimentOf({{"steps", 12}, {"prompts", 3}, {"max_new_tokens", 20}}));
    const Json& bytes = out["after_sleep_bytes"];
    ASSERT_EQ(bytes.size(), 12U);
    for (std::size_t step = 2; step < bytes.size(); ++step) {
        EXPECT_EQ(bytes[step], bytes[1]) << step;
    }
    EXPECT_EQ(out["after_sleep_by_category"].value("kv_cache", 0), 0);
    EXPECT_GT(out["peak_by_role"]["rollout"][0], bytes[0].get<double>() / 2);
    EXPECT_GT(out["peak_by_role"]["training"][0], 0.0);
}

TEST_F(PolicyLoopRun, ADraftModelSleepsToo) {
    const Json draft = {
        {"speculate", "draft"}, {"draft_model", fixture("llama")}, {"steps", 4}, {"max_new_tokens", 12}};
    const Json out = run(experimentOf(draft));
    const Json alone = run(experimentOf({{"steps", 4}, {"max_new_tokens", 12}}));
    ASSERT_FALSE(out["draft_acceptance"][0].is_null()) << "something was drafted";
    EXPECT_GT(out["draft_acceptance"][0], 0.9) << "the draft model is the policy itself";
    EXPECT_EQ(out["after_sleep_bytes"][1], out["after_sleep_bytes"][3]);
    EXPECT_EQ(out["after_sleep_by_category"]["kv_cache"], 0);
    EXPECT_LT(out["logprob_abs_diff"][1], 1e-5) << "kept tokens have the policy's own log-probabilities";
    EXPECT_NEAR(out["losses"][0].get<double>(), alone["losses"][0].get<double>(), 1e-4) << "and are the same tokens";
}

class PolicyLoopResume : public PolicyLoopRun, public testing::WithParamInterface<Json> {};

TEST_P(PolicyLoopResume, IsEqualToTheBit) {
    Json spec = experimentOf({{"steps", 5}, {"eval_every", 2}, {"eval_problems", 3}});
    spec.update(GetParam());
    const Json whole = run(spec);
    Json cut = spec;
    cut.update({{"output", at("out")}, {"save_every", 1}, {"steps", 3}, {"schedule", "constant"}});
    run(cut);
    cut.update({{"resume", at("out")}, {"steps", 5}});
    const Json resumed = run(cut);
    EXPECT_EQ(resumed["resumed_from_step"], 3);
    for (const char* key : {"rewards", "losses", "grad_norms", "logprob_abs_diff", "mismatch_k3", "entropy",
                            "answer_tokens", "mean_ratio", "mixed_version_share", "group_rewards"}) {
        EXPECT_EQ(resumed[key].dump(), whole[key].dump()) << key;
    }
}

INSTANTIATE_TEST_SUITE_P(Options, PolicyLoopResume,
                         testing::Values(Json::object(), Json{{"method", "lora"}, {"kl", 0.1}}, Json{{"kl", 0.1}},
                                         Json{{"partial_tokens", 4}}, Json{{"updates", 2}},
                                         Json{{"temperature", 0.7}, {"top_p", 0.9}, {"dtype", "bfloat16"}},
                                         Json{{"dynamic_sampling", true}}));

TEST_F(PolicyLoopRun, TrainingAndRolloutsAreEqualOnlyWhereBothAreQuantized) {
    const auto difference = [](const Json& more) {
        const Json out = run(experimentOf(more));
        return out["logprob_abs_diff"][2].get<double>();
    };
    EXPECT_LT(difference({{"qat", "int4"}}), 1e-5);
    EXPECT_GT(difference({{"qat", "int4"}, {"rollout", "bf16"}}), 1e-3) << "answers of the masters";
    EXPECT_GT(difference({{"rollout", "int4"}}), 1e-3);
}

TEST_F(PolicyLoopRun, TheReferenceIsTheModelThatTrainingBeganWith) {
    for (const Json& more : {Json{{"method", "full"}}, Json{{"method", "full"}, {"qat", "int4"}},
                             Json{{"method", "lora"}}, Json{{"method", "full"}, {"dtype", "bfloat16"}}}) {
        Json spec = experimentOf({{"kl", 0.05}});
        spec.update(more);
        const Json out = run(spec);
        if (!more.contains("qat")) {
            EXPECT_EQ(out["kl"][0], 0.0) << more;
        }
        EXPECT_GT(out["kl"][2], 0.0) << more;
        EXPECT_LT(out["logprob_abs_diff"][2], more.contains("dtype") ? 0.05 : 1e-4) << "the weights are back: " << more;
    }
}

TEST_F(PolicyLoopRun, LongAnswersGoOnInTheNextStep) {
    const Json out = run(experimentOf({{"partial_tokens", 4}, {"steps", 4}}));
    // Steps 1 and 3 sample four tokens, steps 2 and 4 the other two.
    EXPECT_TRUE(out["rewards"][0].is_null());
    EXPECT_TRUE(out["losses"][0].is_null()) << "no group has ended";
    EXPECT_FALSE(out["rewards"][1].is_null());
    EXPECT_EQ(out["answer_tokens"][1], 6.0);
    EXPECT_EQ(out["mixed_version_share"][1], 0.0) << "no update came between";
    EXPECT_LT(out["logprob_abs_diff"][1], 1e-5);
    EXPECT_EQ(out["asked_problems"], Json::array({4.0, 0.0, 4.0, 0.0}));
}

TEST_F(PolicyLoopRun, AnswersUnderWayGoOnAsTheyBegan) {
    Json spec = experimentOf(
        {{"partial_tokens", 4}, {"output", at("out")}, {"save_every", 1}, {"schedule", "constant"}, {"steps", 3}});
    run(spec);
    spec.update({{"resume", at("out")}, {"steps", 4}});
    Json other = spec;
    other["samples"] = 2;
    EXPECT_THAT(failure(other), HasSubstr("was trained with --samples 4"));
    other = spec;
    other["max_new_tokens"] = 4;
    EXPECT_THAT(failure(other), HasSubstr("was trained with --max-new-tokens 6"));
}

TEST_F(PolicyLoopRun, ATemperatureIsThatOfBothSides) {
    for (const Json& more : {Json{{"temperature", 0.6}}, Json{{"temperature", 1.4}, {"top_k", 20}}}) {
        const Json out = run(experimentOf(more));
        EXPECT_LT(out["logprob_abs_diff"][0], 1e-5) << more;
        EXPECT_EQ(out["truncated_share"][0], 0.0) << more;
    }
}

TEST_F(PolicyLoopRun, QuantizedRolloutsComputeWithWhatTrainingComputesWith) {
    const Json qat = run(experimentOf({{"qat", "int4"}}));
    EXPECT_EQ(qat["rollout_weights"], "int4");
    EXPECT_LT(qat["logprob_abs_diff"][2], 1e-4);
    const Json apart = run(experimentOf({{"rollout", "int4"}}));
    EXPECT_GT(apart["logprob_abs_diff"][0], 10 * qat["logprob_abs_diff"][0].get<double>())
        << "the trainer has other numbers";
    const Json lora = run(experimentOf({{"qat", "int4"}, {"method", "lora"}}));
    EXPECT_LT(lora["logprob_abs_diff"][2], 1e-4);
    EXPECT_THAT(failure(experimentOf({{"qat", "int4"}, {"method", "lora"}, {"rollout", "bf16"}})),
                HasSubstr("rollout: bf16: the adapter is merged into int4 weights"));
}

TEST_F(PolicyLoopRun, RoutersAreReplayed) {
    for (const char* model : {"qwen3-moe", "gpt-oss-bf16"}) {
        const Json spec = experimentOf({{"model", fixture(model)}, {"router_replay", true}, {"share_prefixes", true}});
        const Json out = run(spec);
        EXPECT_EQ(out["replayed_share"], Json::array({1.0, 1.0, 1.0})) << model;
        EXPECT_LT(out["expert_disagreement"][2], 0.01) << model << ": both compute in float32";
        EXPECT_LT(out["logprob_abs_diff"][2], 1e-4) << model;
        Json narrow = spec;
        narrow["dtype"] = "bfloat16";
        narrow["partial_tokens"] = 4;
        narrow["steps"] = 4;
        const Json partial = run(narrow);
        EXPECT_EQ(partial["replayed_share"][1], 1.0) << model;
        Json plan = spec;
        plan.update({{"backend", "meta"}, {"device_profile", "h200"}});
        EXPECT_EQ(planExperiment(Experiment::parse(plan, "experiment"), {}, {})["fits"], true) << model;
    }
    EXPECT_THAT(failure(experimentOf({{"router_replay", true}})), HasSubstr("router_replay: "))
        << "a dense model has nothing to replay";
}

TEST_F(PolicyLoopRun, RewardsOfEvaluationsAreAColumn) {
    Json spec = experimentOf({{"eval_every", 2}, {"eval_problems", 3}, {"output", at("out")}, {"save_every", 1}});
    spec.update({{"partial_tokens", 4}, {"steps", 2}, {"schedule", "constant"}});
    run(spec);
    spec.update({{"resume", at("out")}, {"steps", 4}});
    const Json out = run(spec);
    std::ifstream table(at("out/metrics.csv"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(table, line);) {
        lines.push_back(line);
        EXPECT_EQ(std::ranges::count(line, ','), std::ranges::count(lines[0], ',')) << line;
        EXPECT_EQ(line.find("nan"), std::string::npos) << line;
    }
    ASSERT_EQ(lines.size(), 6U) << "the head, the evaluation before the first step, four steps";
    EXPECT_TRUE(lines[0].ends_with(",eval_reward"));
    EXPECT_TRUE(lines[1].starts_with("0,,,")) << lines[1];
    for (const auto& [line, evaluation] : {std::pair{1, 0}, {3, 1}, {5, 2}}) {
        const std::string& row = lines[static_cast<std::size_t>(line)];
        EXPECT_EQ(std::stod(row.substr(row.rfind(',') + 1)), out["eval_rewards"][evaluation].get<double>()) << row;
    }
    EXPECT_TRUE(lines[2].ends_with(",")) << "no evaluation follows the first step";
}

TEST_F(PolicyLoopRun, CutAnswersAreMaskedOrPenalised) {
    const Json masked = run(experimentOf({{"cut_answers", "mask"}, {"steps", 1}}));
    EXPECT_TRUE(masked["losses"][0].is_null()) << "all answers are cut";
    const Json penalised = run(experimentOf({{"cut_answers", "penalise"}, {"steps", 1}}));
    const Json kept = run(experimentOf({{"steps", 1}}));
    EXPECT_EQ(penalised["losses"], kept["losses"]) << "a penalty that all have changes no advantage";
}

TEST_F(PolicyLoopRun, APlanHasPeaksAndSecondsOfBothRoles) {
    Json plan = experimentOf();
    plan.update({{"backend", "meta"}, {"plan", true}, {"device_profile", "h200"}, {"dtype", "bfloat16"}});
    const Json out = planExperiment(Experiment::parse(plan, "experiment"), {}, {});
    EXPECT_EQ(out["fits"], true);
    EXPECT_GT(out["phase_seconds"]["rollout"][0], 0.0);
    EXPECT_GT(out["phase_seconds"]["update"][0], 0.0);
    EXPECT_GT(out["peak_by_role"]["rollout"][0], 0.0);
    EXPECT_GT(out["peak_by_role"]["training"][0], 0.0);
    EXPECT_GT(out["step_seconds_estimate"], 0.0);
}

TEST_F(PolicyLoopRun, APlanFindsTheLongestAnswerAndTheLargestBatch) {
    Json plan = {{"vitrine", 1},
                 {"workload", "rl"},
                 {"backend", "meta"},
                 {"plan", true},
                 {"model", "synthetic:llama-3.1-8b"},
                 {"prompt_length", 64},
                 {"method", "lora"},
                 {"device_profile", "h200"},
                 {"vram_budget", "30GiB"},
                 {"prompts", 8},
                 {"samples", 8},
                 {"max_new_tokens", 512},
                 {"max_context", true},
                 {"max_batch", true}};
    const auto priced = [](const Json& spec) { return planExperiment(Experiment::parse(spec, "experiment"), {}, {}); };
    const Json out = priced(plan);
    EXPECT_EQ(out["fits"], true);
    EXPECT_EQ(out["longest_answer_limited_by"], "memory");
    EXPECT_EQ(out["max_batch_limited_by"], "memory");
    const auto longest = out["longest_answer"].get<std::int64_t>();
    EXPECT_GT(longest, 512);
    EXPECT_EQ(out["max_batch"].get<std::int64_t>() % 8, 0);
    plan["max_context"] = plan["max_batch"] = false;
    plan["max_new_tokens"] = longest;
    EXPECT_EQ(priced(plan)["fits"], true);
    plan["max_new_tokens"] = 512;
    plan["vram_budget"] = "20GiB";
    const Json tight = priced(plan);
    EXPECT_EQ(tight["fits"], false);
    EXPECT_LT(tight["peak_bytes"], 40e9) << "with what is computed again where memory is short";
}

TEST_F(PolicyLoopRun, GoingOnWithOtherOptionsIsRefused) {
    Json spec = experimentOf({{"output", at("out")}, {"save_every", 1}, {"steps", 1}});
    run(spec);
    spec.update({{"resume", at("out")}, {"steps", 2}});
    const Json others = {
        {"prompts", 3},           {"samples", 5},          {"max_new_tokens", 7}, {"top_k", 5},
        {"partial_tokens", 3},    {"cut_answers", "mask"}, {"rollout", "int4"},   {"dynamic_sampling", true},
        {"presence_penalty", 0.5}};
    for (const auto& [key, value] : others.items()) {
        Json other = spec;
        other[key] = value;
        EXPECT_THAT(failure(other), HasSubstr("was trained with --")) << key;
    }
}

TEST_F(PolicyLoopRun, OptionsThatDoNotGoTogetherAreNamed) {
    Json none = experimentOf();
    none.erase("prompt_length");
    EXPECT_THAT(failure(none), HasSubstr("task: missing; name a task"));
    none["task"] = "nonsense";
    EXPECT_THAT(failure(none), HasSubstr("task: there is no \"nonsense\""));
    EXPECT_THAT(failure(experimentOf({{"task", "sums"}})), HasSubstr("choose one"));
    EXPECT_THAT(failure(experimentOf({{"rollouts", "x.safetensors"}})),
                HasSubstr("is for answers that are sampled, and rollouts gives them"));
    Json file = none;
    file.erase("task");
    file["data"] = "x.jsonl";
    EXPECT_THAT(failure(file), HasSubstr("checker: missing"));
}

TEST_F(PolicyLoopRun, OptionsThatDoNothingAreRefused) {
    const Json others = {
        {"turns", 2},          {"reward_processes", 2}, {"reward_timeout", 5}, {"reward_memory", "1GiB"},
        {"cut_penalty", 0.25}, {"difficulty", 3},       {"eval_problems", 5}};
    for (const auto& [key, value] : others.items()) {
        EXPECT_THAT(failure(experimentOf({{key, value}})), HasSubstr(key + ": ")) << value;
        Json given = experimentOf({{key, value}, {"rollouts", "x.safetensors"}});
        for (const char* sampling : {"prompt_length", "steps", "prompts", "samples", "max_new_tokens", "ignore_eos"}) {
            given.erase(sampling);
        }
        EXPECT_THAT(failure(given), HasSubstr(key + ": is for answers that are sampled")) << value;
    }
    EXPECT_THAT(failure(experimentOf({{"eval_every", 2}, {"eval_problems", 0}})), HasSubstr("eval_every: "));
    Json file = experimentOf({{"data", "x.jsonl"}, {"eval_data", "y.jsonl"}, {"checker", "number"}});
    file.erase("prompt_length");
    EXPECT_THAT(failure(file), HasSubstr("eval_data: is for evaluations"));
    const Json same = experimentOf({{"cut_penalty", 0.5}, {"turns", 1}, {"steps", 1}}); // as where nobody gives them
    EXPECT_EQ(run(same)["rewards"].size(), 1U);
}

} // namespace
} // namespace vitrine::engine
