// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/run_speculation.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "base/resource_path.h"
#include "engine/workload/common/workload.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

Json runDrafting(Json experiment) {
    experiment["vitrine"] = 1;
    return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
}

Json planOfDrafts(Json experiment) {
    experiment["vitrine"] = 1;
    experiment["plan"] = true;
    return planExperiment(Experiment::parse(experiment, "experiment"), {}, {});
}

std::string draftingError(const Json& experiment) {
    try {
        runDrafting(experiment);
    } catch (const base::Error& error) {
        return error.message();
    }
    return "no error";
}

const Json kTinySpeculation = {{"workload", "generate"}, {"model", "synthetic:tiny-gpt-oss"},
                               {"backend", "cpu"},       {"tokens", {5, 6, 7, 8, 9, 10, 11}},
                               {"max_new_tokens", 40},   {"ignore_eos", true}};

Json withOptions(Json experiment, const Json& more) {
    experiment.update(more);
    return experiment;
}

TEST(RunSpeculation, LookUpCopiesAnAnswerInAFewSteps) {
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("vitrine-copying-{}.json", ::getpid())).string();
    const std::string question = "What does a KV cache hold?";
    Json experiment = {{"workload", "generate"},
                       {"model", base::resourcePath("models/vitrine-demo")},
                       {"backend", "cpu"},
                       {"prompt", question},
                       {"max_new_tokens", 100}};
    const std::string answer = runDrafting(experiment)["text"];
    experiment.erase("prompt");
    std::ofstream(path) << Json({{{"role", "user"}, {"content", question}},
                                 {{"role", "assistant"}, {"content", answer}},
                                 {{"role", "user"}, {"content", question}}});
    experiment["chat"] = path;
    const Json plain = runDrafting(experiment);
    experiment["speculate"] = "ngram";
    const Json out = runDrafting(experiment);
    std::filesystem::remove(path);
    EXPECT_EQ(plain["text"], answer) << "the task is to say it again";
    EXPECT_GT(plain["decode_steps"], 15);
    EXPECT_EQ(out["ids"], plain["ids"]);
    EXPECT_LE(out["decode_steps"].get<double>() * 1.5, plain["decode_steps"].get<double>());
    EXPECT_GT(out["acceptance_rate"], 0.5);
    EXPECT_GT(out["tokens_per_step"], 1.5);
    EXPECT_EQ(out["steps_saved"].get<double>() + out["decode_steps"].get<double>(), plain["decode_steps"]);
    EXPECT_GT(out["check_steps"], 0);
    EXPECT_GT(out["check_step_seconds"], 0);
    EXPECT_EQ(out["speculate"], "ngram");
    EXPECT_FALSE(plain.contains("acceptance_rate"));
}

TEST(RunSpeculation, EveryWorkloadGivesTheSameAnswers) {
    const Json drafts = {{"speculate", "draft"}, {"draft_model", "synthetic:tiny-gpt-oss"}, {"draft_tokens", 3}};
    const Json plain = runDrafting(kTinySpeculation);
    const Json out = runDrafting(withOptions(kTinySpeculation, drafts));
    EXPECT_EQ(out["ids"], plain["ids"]);
    EXPECT_EQ(out["acceptance_rate"], 1.0) << "the draft model is the model";
    EXPECT_EQ(out["decode_steps"], 10) << "39 tokens in steps of four";
    EXPECT_GT(out["draft_model_bytes"], 0);
    const Json batch = {{"workload", "batch"}, {"model", "synthetic:tiny-gpt-oss"},
                        {"backend", "cpu"},    {"trace", "uniform"},
                        {"requests", 6},       {"new_tokens", "16-40"},
                        {"slots", 3}};
    const Json served = runDrafting(withOptions(batch, drafts));
    EXPECT_EQ(served["generated_tokens"], runDrafting(batch)["generated_tokens"]);
    EXPECT_EQ(served["acceptance_rate"], 1.0);
    EXPECT_GT(served["tokens_per_step"], 3.0);
    EXPECT_LE(served["slot_utilization"], 1.0);
}

TEST(RunSpeculation, PlansCountTheDraftModelAsTheCpuAllocatesIt) {
    const Json drafts = {{"speculate", "draft"}, {"draft_model", "synthetic:tiny-gpt-oss"}, {"assumed_acceptance", 1}};
    for (const Json& more : {drafts, Json{{"speculate", "none"}}}) {
        const Json ran = runDrafting(withOptions(kTinySpeculation, more));
        const Json planned = planOfDrafts(withOptions(kTinySpeculation, more));
        EXPECT_EQ(planned["peak_bytes"], ran["peak_bytes"]) << more;
        EXPECT_EQ(planned["peak_by_category"], ran["peak_by_category"]) << more;
        EXPECT_EQ(planned["kv_page_bytes"], ran["kv_page_bytes"]) << more;
    }
    const Json large = {{"workload", "generate"},
                        {"model", "synthetic:qwen3-30b-a3b"},
                        {"prompt_length", 100},
                        {"max_new_tokens", 40},
                        {"device_profile", "h200"}};
    const Json alone = planOfDrafts(large);
    const Json both = planOfDrafts(withOptions(
        large, {{"speculate", "draft"}, {"draft_model", "synthetic:qwen3-4b"}, {"assumed_acceptance", 0.7}}));
    EXPECT_EQ(both["peak_by_category"]["weights"].get<std::uint64_t>(),
              alone["peak_by_category"]["weights"].get<std::uint64_t>() +
                  both["draft_model_bytes"].get<std::uint64_t>());
    EXPECT_GT(both["max_by_category"]["kv_cache"], alone["max_by_category"]["kv_cache"]);
    const Json half = {{"speculate", "ngram"}, {"assumed_acceptance", 0.5}, {"max_new_tokens", 200}};
    const Json dense = planOfDrafts(withOptions(withOptions(large, half), {{"model", "synthetic:qwen3-4b"}}));
    EXPECT_NEAR(dense["tokens_per_step"].get<double>(), 1.95, 0.15) << "1 + 1/2 + 1/4 + ...";
    EXPECT_GT(dense["speculation_gain"], 1.3);
    const Json experts = planOfDrafts(withOptions(large, half));
    EXPECT_LT(experts["tokens_per_step"], 1.5) << "each guess reads experts of its own, so few are made";
    EXPECT_GT(experts["speculation_gain"], 0.95);
}

TEST(RunSpeculation, WhatDoesNotGoTogetherIsSaid) {
    EXPECT_THAT(draftingError(withOptions(kTinySpeculation, {{"speculate", "draft"}})),
                ::testing::HasSubstr("draft_model: missing"));
    EXPECT_THAT(draftingError(withOptions(kTinySpeculation, {{"draft_model", "synthetic:tiny-llama"}})),
                ::testing::HasSubstr("is used with speculate draft only"));
    EXPECT_THAT(draftingError(withOptions(kTinySpeculation, {{"speculate", "ngram"}, {"ngram_shortest", 5}})),
                ::testing::HasSubstr("is more than ngram_longest"));
    EXPECT_THAT(
        draftingError(withOptions(
            kTinySpeculation, {{"speculate", "draft"}, {"draft_model", base::resourcePath("models/vitrine-demo")}})),
        ::testing::HasSubstr("vocabulary of 1536 tokens"));
    EXPECT_THAT(draftingError(withOptions(kTinySpeculation,
                                          {{"model", test::fixture("llama-dynamic-rope")}, {"speculate", "ngram"}})),
                ::testing::HasSubstr("rotary frequencies"));
}

} // namespace
} // namespace vitrine::engine
