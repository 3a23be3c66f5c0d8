// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/problem_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/checkpoint/log_capture.h"

namespace vitrine::engine {
namespace {

/// A folder of this process: tests that run at the same time have others.
const test::TempFolder& problemsFolder() {
    static const test::TempFolder kFolder;
    return kFolder;
}

std::string problemsPath(const std::string& text, const std::string& name = "problems.jsonl") {
    return problemsFolder().write(name, text);
}

std::unique_ptr<ProblemSource> problemsOf(const std::string& text, ProblemFileOptions options = {}) {
    options.path = problemsPath(text);
    return problemFile(options);
}

/// The message without the folder of the file.
std::string problemsError(const std::string& text, ProblemFileOptions options = {}) {
    try {
        problemsOf(text, std::move(options));
    } catch (const base::Error& error) {
        return error.message().substr(error.message().find("problems.jsonl"));
    }
    return "no error";
}

ProblemFileOptions judgedBy(const char* checker) {
    ProblemFileOptions options;
    options.checker = findChecker(checker);
    return options;
}

std::string askedText(const Problem& problem) {
    return problem.messages.empty() ? problem.text : problem.messages.back().text();
}

/// Rows "q 0", "q 1", ...
std::string manyRows(int count) {
    std::string out;
    for (int i = 0; i < count; ++i) {
        out += fmt::format("{{\"prompt\": \"q {}\", \"answer\": {}}}\n", i, i);
    }
    return out;
}

std::vector<std::string> trainingTexts(const ProblemSource& source, std::int64_t begin, std::int64_t count) {
    std::vector<std::string> out;
    for (std::int64_t number = begin; number < begin + count; ++number) {
        out.push_back(askedText(source.training(number)));
    }
    return out;
}

TEST(ProblemFile, PromptsInAllTheirForms) {
    const auto textOf = [](const char* row) { return askedText(problemsOf(row)->training(0)); };
    EXPECT_EQ(textOf(R"({"prompt": "a"})"), "a");
    EXPECT_EQ(textOf(R"({"question": "a"})"), "a");
    EXPECT_EQ(textOf(R"({"problem": "a", "prompt": null})"), "a");
    EXPECT_EQ(textOf(R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]})"), "a");
    const auto source = problemsOf(R"({"prompt": [{"content": "a", "role": "user"}], "extra": 5})");
    const Problem problem = source->training(0);
    ASSERT_EQ(problem.messages.size(), 1U);
    EXPECT_EQ(problem.messages[0].role(), "user");
    EXPECT_EQ(problem.facts->at("extra"), 5);
    EXPECT_TRUE(problem.name.ends_with("problems.jsonl: line 1")) << problem.name;
    EXPECT_FALSE(source->judges());
    EXPECT_EQ(source->evaluations(), 0);
    EXPECT_EQ(problemsOf(R"({"tokens": [1, 2]})")->training(0).tokens, (std::vector<std::int32_t>{1, 2}));
    EXPECT_TRUE(problemsOf("[\n{\"prompt\": \"a\"}]")->training(0).name.ends_with("problems.jsonl: row 1"));
}

TEST(ProblemFile, RawTextsHaveNoMessages) {
    ProblemFileOptions options;
    options.raw = true;
    const Problem problem = problemsOf(R"({"prompt": "once"})", options)->training(0);
    EXPECT_EQ(problem.text, "once");
    EXPECT_TRUE(problem.messages.empty());
    EXPECT_EQ(problemsOf(R"({"prompt": [{"role": "user", "content": "a"}]})", options)->training(0).messages.size(),
              1U);
}

TEST(ProblemFile, RowsOfKnownDataSetsAreJudged) {
    const auto reward = [](const char* checker, const char* row, const char* answer) {
        const auto source = problemsOf(row, judgedBy(checker));
        return source->reward(source->training(0), answer);
    };
    const char* const dapo = R"({"data_source": "math_dapo", "prompt": [{"content": "Solve it.", "role": "user"}],
 "ability": "MATH", "reward_model": {"ground_truth": "34", "style": "rule-lighteval/MATH_v2"}})";
    std::string line = dapo;
    std::ranges::replace(line, '\n', ' ');
    EXPECT_EQ(reward("math", line.c_str(), "Answer: 34"), 1);
    EXPECT_EQ(reward("math", line.c_str(), "Answer: 35"), 0);
    EXPECT_EQ(reward("number", line.c_str(), "34"), 1);
    const char* const gsm = R"({"question": "How many?", "answer": "She has 3 + 4 = <<3+4=7>>7.\n#### 1,007"})";
    EXPECT_EQ(reward("number", gsm, "so 1007"), 1);
    EXPECT_EQ(reward("math", gsm, "\\boxed{1007}"), 1);
    EXPECT_EQ(reward("math", gsm, "\\boxed{7}"), 0);
    EXPECT_EQ(reward("math", R"({"problem": "p", "solution": "long. So \\boxed{\\frac12}"})", "\\boxed{0.5}"), 1);
    EXPECT_EQ(reward("math", R"({"problem": "p", "solution": "long", "answer": "2"})", "\\boxed{2}"), 1);
    EXPECT_EQ(reward("choice", R"({"prompt": "p", "target": "B"})", "(B)"), 1);
}

TEST(ProblemFile, EveryEpochAsksAllRowsInAnotherOrder) {
    const auto source = problemsOf(manyRows(50)), same = problemsOf(manyRows(50));
    const auto first = trainingTexts(*source, 0, 50), second = trainingTexts(*source, 50, 50);
    EXPECT_NE(first, second);
    EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), 50U);
    EXPECT_EQ(std::set<std::string>(second.begin(), second.end()).size(), 50U);
    EXPECT_EQ(trainingTexts(*same, 50, 50), second) << "does not depend on what was asked before";
    EXPECT_EQ(trainingTexts(*source, 0, 50), first);
    ProblemFileOptions other;
    other.seed = 1;
    EXPECT_NE(trainingTexts(*problemsOf(manyRows(50), other), 0, 50), first);
}

TEST(ProblemFile, ManyThreadsMayAsk) {
    const auto source = problemsOf(manyRows(20));
    const auto expected = trainingTexts(*source, 0, 100);
    std::vector<std::vector<std::string>> asked(4);
    std::vector<std::jthread> threads;
    for (auto& texts : asked) {
        threads.emplace_back([&] { texts = trainingTexts(*source, 0, 100); });
    }
    threads.clear();
    for (const auto& texts : asked) {
        EXPECT_EQ(texts, expected);
    }
}

TEST(ProblemFile, HeldBackProblemsAreNeverAskedInTraining) {
    ProblemFileOptions options;
    options.heldBack = 5;
    // Each prompt stands in the file twice: with a problem its copy is held back.
    const auto source = problemsOf(manyRows(20) + manyRows(20), options);
    ASSERT_EQ(source->evaluations(), 5);
    std::set<std::string> held;
    for (std::int64_t number = 0; number < 5; ++number) {
        held.insert(askedText(source->evaluation(number)));
    }
    EXPECT_EQ(held.size(), 5U);
    std::map<std::string, int> asked;
    for (const std::string& text : trainingTexts(*source, 0, 60)) {
        EXPECT_FALSE(held.contains(text)) << text;
        ++asked[text];
    }
    EXPECT_EQ(asked.size(), 15U);
    EXPECT_EQ(asked.begin()->second, 4) << "two rows, two epochs";
}

TEST(ProblemFile, ProblemsOfTheEvaluationsFileAreNeverAskedInTraining) {
    ProblemFileOptions options;
    options.evaluationPath = problemsPath(manyRows(3) + manyRows(3), "evaluation.jsonl");
    std::unique_ptr<ProblemSource> source;
    const auto warnings = test::warningsOf([&] { source = problemsOf(manyRows(5), options); });
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_TRUE(warnings[0].ends_with("problems.jsonl: 3 of its 5 problems have prompts that are in " +
                                      options.evaluationPath + " too, and are not trained on"))
        << warnings[0];
    EXPECT_EQ(source->evaluations(), 6) << "as the file has them";
    EXPECT_EQ(askedText(source->evaluation(4)), "q 1");
    EXPECT_TRUE(source->evaluation(4).name.ends_with("evaluation.jsonl: line 5"));
    const auto texts = trainingTexts(*source, 0, 4);
    EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()), (std::set<std::string>{"q 3", "q 4"}));
    EXPECT_EQ(problemsError(manyRows(2), options), "problems.jsonl: all its prompts are in " + options.evaluationPath +
                                                       " too; give other problems to train on");
}

TEST(ProblemFile, TheDigestDependsOnContentsAndOptions) {
    ProblemFileOptions held, seeded = judgedBy("exact"), raw;
    held.heldBack = 1;
    seeded.seed = 1;
    raw.raw = true;
    const std::string digest = problemsOf(manyRows(3))->digest();
    EXPECT_EQ(digest, problemsOf(manyRows(3))->digest());
    std::set<std::string> digests = {digest};
    for (const ProblemFileOptions& options : {held, seeded, raw, judgedBy("exact"), judgedBy("math")}) {
        digests.insert(problemsOf(manyRows(3), options)->digest());
    }
    digests.insert(problemsOf(manyRows(4))->digest());
    EXPECT_EQ(digests.size(), 7U);
}

TEST(ProblemFile, RowsThatAskNothingAreNamed) {
    const std::string good = "{\"prompt\": \"a\"}\n\n";
    const auto error = [&](const char* row) { return problemsError(good + row); };
    EXPECT_EQ(error("{}"), "problems.jsonl: line 3: prompt: is missing; give \"prompt\", \"messages\", \"question\", "
                           "\"problem\" or \"tokens\"");
    EXPECT_EQ(error("5"), "problems.jsonl: line 3: must be an object such as {\"prompt\": \"...\"}, not number");
    EXPECT_EQ(error(R"({"prompt": ""})"), "problems.jsonl: line 3: prompt: is empty; remove the row");
    EXPECT_EQ(error(R"({"prompt": 5})"),
              "problems.jsonl: line 3: prompt: must be text or a list of messages, not number");
    EXPECT_EQ(error(R"({"question": []})"), "problems.jsonl: line 3: question: must be text, not array");
    EXPECT_EQ(error(R"({"messages": "a"})"), "problems.jsonl: line 3: messages: must be a list of messages");
    EXPECT_EQ(error(R"({"prompt": []})"), "problems.jsonl: line 3: messages: there is no message");
    EXPECT_EQ(error(R"({"messages": [{"content": "a"}]})"), "problems.jsonl: line 3: messages[0].role: is missing");
    EXPECT_EQ(error(R"({"messages": [{"role": "assistant", "content": "a"}]})"),
              "problems.jsonl: line 3: messages: ends with an answer of the assistant's; leave it out, so that the "
              "model gives it");
    EXPECT_TRUE(error("{\"prompt\"").starts_with("problems.jsonl: line 3, column ")) << error("{\"prompt\"");
    EXPECT_TRUE(error("{\"prompt\": \"\xFF\"}").starts_with("problems.jsonl: line 3, column "));
    EXPECT_EQ(problemsError("\n"), "problems.jsonl: there is no problem; write a JSON object such as {\"prompt\": "
                                   "\"...\"} on each line");
    EXPECT_EQ(problemsError("{\"prompt\": \"" + std::string(std::size_t{8} << 20, 'a') + "\"}"),
              "problems.jsonl: line 1: has 8388622 bytes, and 8388608 at most are read; shorten or remove the row");
}

TEST(ProblemFile, IdsMustBeOfTheModel) {
    ProblemFileOptions options;
    options.vocab = 10;
    EXPECT_EQ(problemsError(R"({"tokens": [1, 9]})", options), "no error");
    EXPECT_EQ(problemsError(R"({"tokens": [1, 10]})", options),
              "problems.jsonl: line 1: tokens[1]: id 10 is not from 0 to 9");
    EXPECT_EQ(problemsError(R"({"tokens": [-1]})"),
              "problems.jsonl: line 1: tokens[0]: id -1 is not from 0 to 2147483646");
    EXPECT_EQ(problemsError(R"({"tokens": [18446744073709551615]})"),
              "problems.jsonl: line 1: tokens[0]: id 18446744073709551615 is not from 0 to 2147483646");
    EXPECT_EQ(problemsError(R"({"tokens": [1.5]})"), "problems.jsonl: line 1: tokens[0]: must be an id, not \"1.5\"");
    EXPECT_EQ(problemsError(R"({"tokens": []})"), "problems.jsonl: line 1: tokens: is empty; remove the row");
    EXPECT_EQ(problemsError(R"({"tokens": "1"})"), "problems.jsonl: line 1: tokens: must be a list of ids, not string");
}

TEST(ProblemFile, AnswersThatCheckersNeedAreNamed) {
    EXPECT_EQ(problemsError(R"({"prompt": "a"})", judgedBy("math")),
              "problems.jsonl: line 1: answer: is missing, and the checker math needs it; add it, or judge otherwise");
    EXPECT_EQ(problemsError(R"({"prompt": "a", "reward_model": 5})", judgedBy("exact")),
              "problems.jsonl: line 1: answer: is missing, and the checker exact needs it; add it, or judge otherwise");
    EXPECT_EQ(problemsError(R"({"prompt": "a", "answer": "none"})", judgedBy("number")),
              "problems.jsonl: line 1: answer: there is no number in \"none\"; choose another checker");
    EXPECT_EQ(problemsError(R"({"prompt": "a", "reward_model": {"ground_truth": "F"}})", judgedBy("choice")),
              "problems.jsonl: line 1: reward_model.ground_truth: must be one of the letters A to E, not \"F\"");
    EXPECT_EQ(problemsError(R"({"prompt": "a", "target": "("})", judgedBy("regex")),
              "problems.jsonl: line 1: target: is no regular expression: missing closing parenthesis at character 2");
}

TEST(ProblemFile, OneProblemIsLeftToTrainOn) {
    ProblemFileOptions options;
    options.heldBack = 3;
    EXPECT_EQ(problemsError(manyRows(3), options),
              "problems.jsonl: 3 problems cannot be held back from 3 with different "
              "prompts; hold back fewer, so that one is left to train on");
    options.heldBack = -1;
    EXPECT_NE(problemsError(manyRows(3), options), "no error");
    options.path = problemsFolder().file("missing.jsonl");
    EXPECT_THROW(problemFile(options), base::BadInput);
}

} // namespace
} // namespace vitrine::engine
