// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/problem_choice.h"

#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/rl/problems/problem_file.h"
#include "engine/rl/problems/task.h"
#include "engine/rl/rewards/reward_command.h"
#include "engine/workload/experiment/option_value.h"

namespace vitrine::engine {

namespace {

/// Prompts of arbitrary tokens, whose answers get arbitrary rewards: to measure and to plan, where a model has no
/// tokenizer or nobody cares what it says.
class ArbitraryProblems final : public ProblemSource {
public:
    ArbitraryProblems(std::int64_t length, std::int64_t vocab, std::uint64_t seed)
        : length_(length), vocab_(vocab), seed_(seed) {}

    Problem training(std::int64_t number) const override { return problem(static_cast<std::uint32_t>(2 * number)); }
    std::int64_t evaluations() const override { return 64; }
    Problem evaluation(std::int64_t number) const override {
        return problem(static_cast<std::uint32_t>(2 * number + 1));
    }
    /// Even texts are right.
    double reward(const Problem&, const std::string& answer) const override {
        std::uint32_t sum = 0;
        for (const char byte : answer) {
            sum = sum * 31 + static_cast<unsigned char>(byte);
        }
        return sum / 16 % 2 == 0 ? 1 : 0;
    }
    bool judges() const override { return true; }
    std::string digest() const override { return fmt::format("arbitrary {} {}", length_, seed_); }

private:
    Problem problem(std::uint32_t stream) const {
        Problem out;
        out.name = fmt::format("prompt {}", stream);
        out.tokens = arbitraryTokens(length_, vocab_, seed_, stream);
        out.facts = std::make_shared<const nlohmann::json>(nlohmann::json::object());
        return out;
    }

    std::int64_t length_, vocab_;
    std::uint64_t seed_;
};

} // namespace

void checkProblems(const Experiment& experiment, const std::string& name) {
    const int sources =
        (experiment.has("task") ? 1 : 0) + (experiment.has("data") ? 1 : 0) + (experiment.has("prompt_length") ? 1 : 0);
    if (sources != 1) {
        failOption(name, "task",
                   sources == 0 ? "missing; name a task, the data to ask, or rollouts that are given"
                                : "more than one of task, data and prompt_length is given; choose one");
    }
    if (experiment.has("task") && findTask(experiment.text("task")) == nullptr) {
        std::string all;
        for (const Task& task : tasks()) {
            all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", task.name, task.title);
        }
        failOption(name, "task", fmt::format("there is no \"{}\"; there are {}", experiment.text("task"), all));
    }
    const bool hasJudge = experiment.has("checker") || experiment.has("reward_command");
    if (experiment.has("data") && !hasJudge) {
        failOption(name, "checker", "missing; say how answers to the data are judged, or give a reward_command");
    }
    if (experiment.has("checker") && experiment.has("reward_command")) {
        failOption(name, "checker", "stands beside reward_command; choose one of the two judges");
    }
    for (const char* key : {"checker", "eval_data"}) {
        if (experiment.has(key) && !experiment.has("data")) {
            failOption(name, key, "is for problems of data; leave it out");
        }
    }
}

std::unique_ptr<ProblemSource> chosenProblems(const Run& run, const ModelSource& source) {
    if (run.spec.has("prompt_length")) {
        return std::make_unique<ArbitraryProblems>(run.spec.integer("prompt_length"), source.config.vocab, run.seed());
    }
    if (run.spec.has("task")) {
        return taskProblems(*findTask(run.spec.text("task")), run.spec.integer("difficulty"), run.seed());
    }
    ProblemFileOptions options;
    options.path = run.spec.text("data");
    options.evaluationPath = run.spec.text("eval_data");
    const bool evaluates = run.spec.integer("eval_every") > 0 && options.evaluationPath.empty();
    options.heldBack = evaluates ? run.spec.integer("eval_problems") : 0;
    options.checker = run.spec.has("checker") ? findChecker(run.spec.text("checker")) : nullptr;
    options.seed = run.seed();
    options.raw = run.spec.flag("raw");
    options.vocab = source.config.vocab;
    return problemFile(options);
}

std::unique_ptr<Rewarder> chosenRewarder(const Run& run, const ProblemSource& problems) {
    if (!run.spec.has("reward_command")) {
        return sourceRewarder(problems);
    }
    RewardCommandOptions options;
    options.command = run.spec.text("reward_command");
    options.processes = run.spec.integer("reward_processes");
    options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(run.spec.real("reward_timeout") * 1000));
    options.memoryBytes = run.spec.bytes("reward_memory");
    return std::make_unique<RewardCommand>(options);
}

std::string rewardSourceName(const Experiment& experiment) {
    return experiment.has("reward_command") ? "command " + experiment.text("reward_command")
           : experiment.has("checker")      ? "checker " + experiment.text("checker")
           : experiment.has("task")         ? "task " + experiment.text("task")
                                            : "arbitrary rewards";
}

} // namespace vitrine::engine
