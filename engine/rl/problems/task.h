// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tasks that come with the program: each makes problems of any difficulty and checks answers, in one source file of its
// name (sums_task.cpp). A task is a row of a table.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "engine/rl/problems/problem.h"

namespace vitrine::engine {

/// Random numbers of one problem: Philox, key (seed, task), counter (number of the problem, draw).
class ProblemDraws {
public:
    ProblemDraws(std::uint64_t seed, std::uint32_t stream, std::uint64_t number)
        : seed_(seed), stream_(stream), number_(number) {}
    /// Uniform from `least` to `most`, both included, without bias.
    std::int64_t between(std::int64_t least, std::int64_t most);

private:
    std::uint64_t seed_;
    std::uint32_t stream_;
    std::uint64_t number_;
    std::uint64_t next_ = 0;
};

/// What a task made: a question, and the facts that its check needs.
struct TaskProblem {
    std::string question;
    std::shared_ptr<const nlohmann::json> facts; ///< an object, never null
};

struct Task {
    std::string_view name;  ///< of the option task
    std::string_view title; ///< what it asks, for help texts: "Sums with their steps"
    std::int64_t mostDifficulty = 10;
    TaskProblem (*make)(std::int64_t difficulty, ProblemDraws& draws);
    /// The reward of an answer, from 0 to 1. Any text may come, of any length; takes time linear in it.
    double (*check)(const nlohmann::json& facts, std::string_view answer);
};

/// All tasks, in the order in which help lists them.
std::span<const Task> tasks();
/// Null: there is none of that name.
const Task* findTask(std::string_view name);
/// Problems of a task. A problem belongs to the evaluation when a hash of its question says so, as of one in eight (of
/// few questions: eight, or half of them), so that none is in both sets, and numbers of the training set are drawn
/// again until theirs is not. All seeds have the same evaluation: 512 different questions, or as many as there are.
/// Throws BadInput "difficulty: ..." for one that the task does not have.
std::unique_ptr<ProblemSource> taskProblems(const Task& task, std::int64_t difficulty, std::uint64_t seed);

} // namespace vitrine::engine
