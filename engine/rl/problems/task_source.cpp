// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/integers.h"
#include "base/sha256.h"
#include "engine/rl/problems/task.h"

namespace vitrine::engine {

namespace {

constexpr std::int64_t kMostEvaluations = 512;
constexpr std::size_t kFewestEvaluations = 8;
constexpr std::uint64_t kDrawnForEvaluation = 20'000; ///< problems that are looked at to find the evaluation's
constexpr int kMostRedraws = 10'000;                  ///< seven of eight problems are of the training set
constexpr std::uint64_t kEighth = ~std::uint64_t{0} / 8;
constexpr std::int64_t kDigested = 16;       ///< problems of the training set
constexpr std::uint64_t kEvaluationSeed = 0; ///< all seeds have the same evaluation, so that runs can be compared

/// The first bytes of a digest as a number.
std::uint64_t digestNumber(std::string_view text) {
    base::Sha256 sha;
    sha.add(text);
    const auto bytes = sha.digest();
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        out = (out << 8) | bytes[i];
    }
    return out;
}

class TaskSource final : public ProblemSource {
public:
    TaskSource(const Task& task, std::int64_t difficulty, std::uint64_t seed)
        : task_(task), difficulty_(difficulty), seed_(seed),
          trainingStream_(
              static_cast<std::uint32_t>(digestNumber(fmt::format("training {} {}", task.name, difficulty)))),
          evaluationStream_(
              static_cast<std::uint32_t>(digestNumber(fmt::format("evaluation {} {}", task.name, difficulty)))) {
        findEvaluation();
    }

    Problem training(std::int64_t number) const override {
        return problemOf(made(number), fmt::format("{} {}", task_.name, number));
    }
    std::int64_t evaluations() const override { return static_cast<std::int64_t>(evaluation_.size()); }
    Problem evaluation(std::int64_t number) const override {
        return problemOf(evaluation_.at(base::toIndex(number)), fmt::format("{} evaluation {}", task_.name, number));
    }
    double reward(const Problem& problem, const std::string& answer) const override {
        return task_.check(*problem.facts, answer);
    }
    bool judges() const override { return true; }
    /// Has problems too: it changes when the program's tasks do.
    std::string digest() const override {
        base::Sha256 sha;
        sha.add(fmt::format("task {} difficulty {} seed {}\n", task_.name, difficulty_, seed_));
        const auto add = [&sha](const TaskProblem& problem) {
            sha.add(problem.question + "\n" + problem.facts->dump() + "\n");
        };
        for (std::int64_t number = 0; number < kDigested; ++number) {
            add(made(number));
        }
        std::ranges::for_each(evaluation_, add);
        return sha.hex();
    }

private:
    static Problem problemOf(const TaskProblem& made, std::string name) {
        Problem out;
        out.name = std::move(name);
        out.messages.emplace_back("user", made.question);
        out.facts = made.facts;
        return out;
    }

    bool isOfEvaluation(const std::string& question) const { return digestNumber(question) < evaluationBelow_; }

    TaskProblem made(std::int64_t number) const {
        ProblemDraws draws(seed_, trainingStream_, static_cast<std::uint64_t>(number));
        for (int i = 0; i < kMostRedraws; ++i) {
            TaskProblem problem = task_.make(difficulty_, draws);
            if (!isOfEvaluation(problem.question)) {
                return problem;
            }
        }
        throw base::Internal(fmt::format("task {} has no problem to train on", task_.name));
    }

    TaskProblem drawnForEvaluation(std::uint64_t number) const {
        ProblemDraws draws(kEvaluationSeed, evaluationStream_, number);
        return task_.make(difficulty_, draws);
    }

    /// Where so few different questions exist that hardly one in eight is there, those with the lowest hashes are the
    /// evaluation's, but never more than half.
    void findEvaluation() {
        std::set<std::uint64_t> hashes;
        std::size_t below = 0;
        for (std::uint64_t i = 0; i < kDrawnForEvaluation && below < base::toIndex(kMostEvaluations); ++i) {
            const std::uint64_t hash = digestNumber(drawnForEvaluation(i).question);
            below += hashes.insert(hash).second && hash < evaluationBelow_ ? 1 : 0;
        }
        const std::size_t half = hashes.size() / 2;
        const std::size_t wanted = std::min(std::max(below, std::min(kFewestEvaluations, half)), half);
        if (wanted != below) {
            evaluationBelow_ = *std::next(hashes.begin(), static_cast<std::ptrdiff_t>(wanted));
        }
        std::set<std::uint64_t> taken;
        for (std::uint64_t i = 0; i < kDrawnForEvaluation && evaluations() < kMostEvaluations; ++i) {
            TaskProblem problem = drawnForEvaluation(i);
            if (isOfEvaluation(problem.question) && taken.insert(digestNumber(problem.question)).second) {
                evaluation_.push_back(std::move(problem));
            }
        }
    }

    const Task task_;
    const std::int64_t difficulty_;
    const std::uint64_t seed_;
    const std::uint32_t trainingStream_;
    const std::uint32_t evaluationStream_;
    std::uint64_t evaluationBelow_ = kEighth; ///< hashes of questions of the evaluation
    std::vector<TaskProblem> evaluation_;
};

} // namespace

std::unique_ptr<ProblemSource> taskProblems(const Task& task, std::int64_t difficulty, std::uint64_t seed) {
    if (difficulty < 1 || difficulty > task.mostDifficulty) {
        throw base::BadInput(fmt::format("difficulty: the task {} has the difficulties 1 to {}, not {}", task.name,
                                         task.mostDifficulty, difficulty));
    }
    return std::make_unique<TaskSource>(task, difficulty, seed);
}

} // namespace vitrine::engine
