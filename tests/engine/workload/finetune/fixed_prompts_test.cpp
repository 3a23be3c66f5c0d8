// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Answers to fixed prompts while a model is trained.

#include "engine/workload/finetune/fixed_prompts.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/resource_path.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr const char* kQuestion = "What colour is the vitrine?";

class FixedPromptsTest : public testing::Test {
protected:
    FixedPromptsTest() {
        std::ofstream(at("rows.jsonl"))
            << R"({"messages": [{"role": "user", "content": "What colour is the vitrine?"}, )"
            << R"({"role": "assistant", "content": "Blue, blue, blue."}]})";
    }
    std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
    /// A short training that learns one answer by heart.
    Json training() const {
        return {{"workload", "finetune"},
                {"model", base::resourcePath("models/vitrine-demo")},
                {"data", at("rows.jsonl")},
                {"train", "attention"},
                {"lr", 0.02},
                {"steps", 8},
                {"date", "2026-01-01"},
                {"sample_tokens", 12},
                {"sample_prompts", {kQuestion}},
                {"sample_every", 4}};
    }
    static Json run(Json experiment) {
        experiment["vitrine"] = 1;
        experiment["backend"] = experiment.value("backend", "cpu");
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
    }
    static std::vector<std::int64_t> stepsOf(const Json& answers) {
        std::vector<std::int64_t> steps;
        for (const Json& row : answers) {
            steps.push_back(row["step"].get<std::int64_t>());
        }
        return steps;
    }
    static void expectRefused(const Json& experiment, const std::string& part) {
        try {
            run(experiment);
            ADD_FAILURE() << "accepted, but expected: " << part;
        } catch (const base::Error& error) {
            EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
        }
    }

private:
    test::TempFolder folder_;
};

TEST_F(FixedPromptsTest, TheAnswerChangesAsTheModelLearnsIt) {
    Json experiment = training();
    experiment["output"] = at("out");
    const Json answers = run(experiment)["answers"];
    EXPECT_EQ(stepsOf(answers), (std::vector<std::int64_t>{0, 4, 8}));
    EXPECT_EQ(answers[0]["prompt"], kQuestion);
    EXPECT_NE(answers[0]["text"], answers[2]["text"]);
    EXPECT_LE(answers[2]["tokens"].get<int>(), 12);
    const Json asked = run({{"workload", "generate"},
                            {"model", experiment["model"]},
                            {"adapter", at("out")},
                            {"prompt", kQuestion},
                            {"date", "2026-01-01"},
                            {"max_new_tokens", 12}});
    EXPECT_EQ(answers[2]["text"], asked["text"]) << "generate with the adapter that was saved";
    EXPECT_EQ(answers[2]["tokens"], asked["ids"].size());
}

TEST_F(FixedPromptsTest, AnswersLeaveTheTrainingAsItIs) {
    Json experiment = training();
    const Json asked = run(experiment);
    for (const char* key : {"sample_prompts", "sample_every", "sample_tokens"}) {
        experiment.erase(key);
    }
    const Json silent = run(experiment);
    EXPECT_EQ(asked["losses"], silent["losses"]);
    EXPECT_EQ(asked["grad_norms"], silent["grad_norms"]);
    EXPECT_FALSE(silent.contains("answers"));
}

TEST_F(FixedPromptsTest, AResumedRunHasTheAnswersOfOneThatWasNotStopped) {
    Json experiment = training();
    const Json whole = run(experiment);
    experiment["output"] = at("out");
    experiment["save_every"] = 4;
    experiment["steps"] = 5;
    run(experiment);
    experiment["steps"] = 8;
    experiment["resume"] = at("out");
    EXPECT_EQ(run(experiment)["answers"], whole["answers"]);
}

TEST_F(FixedPromptsTest, ABranchWithAnotherPromptAnswersItBeforeItsFirstStep) {
    Json experiment = training();
    experiment["output"] = at("out");
    experiment["save_every"] = 4;
    experiment["steps"] = 4;
    run(experiment);
    experiment["steps"] = 8;
    experiment["output"] = at("branch");
    experiment["resume"] = at("out");
    experiment["sample_prompts"] = {kQuestion, "How are you?"};
    const Json answers = run(experiment)["answers"];
    EXPECT_EQ(stepsOf(answers), (std::vector<std::int64_t>{0, 4, 4, 8, 8}));
    EXPECT_EQ(answers[2]["prompt"], "How are you?");
}

TEST_F(FixedPromptsTest, APlanHasThePeakOfARunThatAnswers) {
    Json experiment = training();
    experiment["steps"] = 2;
    // Answers that take more memory than a step, so that a plan without them would be wrong. They are short: a plan
    // counts all tokens that an answer may have.
    experiment["sample_tokens"] = 2;
    experiment["sample_prompts"] = Json::array();
    for (int i = 0; i < 48; ++i) {
        experiment["sample_prompts"].push_back("Tell me a long and varied story of number " + std::to_string(i) + ".");
    }
    const auto peak = [](const Json& result) { return result["peak_bytes"].get<double>(); };
    const double measured = peak(run(experiment));
    Json plan = experiment;
    plan["plan"] = true;
    EXPECT_NEAR(peak(run(plan)) / measured, 1, 0.01);
    for (const char* key : {"sample_prompts", "sample_every"}) {
        plan.erase(key);
    }
    EXPECT_LT(peak(run(plan)) / measured, 0.99) << "answers hold more than a step here";
}

TEST_F(FixedPromptsTest, PromptsComeFromFilesToo) {
    std::ofstream(at("prompts.jsonl")) << R"({"prompt": "One?"})" << '\n'
                                       << R"({"messages": [{"role": "user", "content": "Two?"}]})" << '\n';
    const std::vector<FixedPrompt> prompts = readFixedPrompts({at("prompts.jsonl"), "Three?"});
    ASSERT_EQ(prompts.size(), 3U);
    EXPECT_EQ(prompts[0].text, "One?");
    EXPECT_EQ(prompts[1].messages.front().text(), "Two?");
    EXPECT_EQ(prompts[2].messages.front().role(), "user");
    std::ofstream(at("bad.jsonl")) << R"({"prompt": "One?"})" << '\n' << R"({"text": "Two?"})" << '\n';
    try {
        readFixedPrompts({at("bad.jsonl")});
        ADD_FAILURE() << "accepted a line without a prompt";
    } catch (const base::BadInput& error) {
        EXPECT_NE(error.message().find("bad.jsonl: line 2: prompt: missing"), std::string::npos) << error.message();
    }
}

TEST_F(FixedPromptsTest, WhatCannotBeAnsweredIsRefused) {
    Json experiment = training();
    experiment["sample_prompts"] = {""};
    expectRefused(experiment, "sample_prompts: must be a list of texts, none empty");
    experiment.erase("sample_prompts");
    expectRefused(experiment, "sample_every: there is nothing to answer");
    experiment = training();
    experiment["sample_every"] = 1;
    experiment["steps"] = 100000;
    expectRefused(experiment, "answer less often");
    experiment = training();
    experiment["sample_tokens"] = 60000;
    expectRefused(experiment, "lower sample_tokens");
    expectRefused({{"workload", "finetune"},
                   {"model", test::fixture("llama")},
                   {"prompt_length", 12},
                   {"batch", 1},
                   {"steps", 1},
                   {"sample_prompts", {kQuestion}}},
                  "has no tokenizer");
}

} // namespace
} // namespace vitrine::engine
