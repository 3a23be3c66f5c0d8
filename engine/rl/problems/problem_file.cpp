// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/problem_file.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/count_text.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/json_rows.h"
#include "base/log.h"
#include "base/sha256.h"
#include "engine/rl/problems/problem_row.h"
#include "engine/training/data/permutation.h"
#include "engine/training/data/training_rows.h"

namespace vitrine::engine {

namespace {

constexpr std::size_t kMostBytesOfAProblem = std::size_t{8} << 20;
constexpr std::size_t kMostBytesOfProblems = std::size_t{2} << 30; ///< of a file; its text stays in memory
constexpr std::size_t kMostProblems = std::size_t{4} << 20;

/// A row as the file has it. It is parsed again when it is asked: parsed rows take many times the bytes.
struct ProblemLine {
    std::string text;
    std::string key;         ///< of its prompt
    std::int64_t number = 0; ///< line, or place in the array, from 1
    std::int64_t line = 0;   ///< of the file
    bool inArray = false;
};

Problem problemOfLine(const ProblemLine& line, const std::string& path, const ProblemRowOptions& options) {
    return problemOfRow(line.text, path, line.line, rowPlace(path, line.number, line.inArray), options);
}

std::vector<ProblemLine> readProblemLines(const std::string& path, const ProblemRowOptions& options) {
    std::vector<ProblemLine> lines;
    std::size_t bytes = 0;
    base::forJsonRows(path, [&](const base::JsonRow& row) {
        const std::string place = rowPlace(path, row.number, row.inArray);
        if (row.text.size() > kMostBytesOfAProblem) {
            throw base::BadInput(fmt::format("{}: has {} bytes, and {} at most are read; shorten or remove the row",
                                             place, row.text.size(), kMostBytesOfAProblem));
        }
        bytes += row.text.size();
        if (bytes > kMostBytesOfProblems || lines.size() >= kMostProblems) {
            throw base::BadInput(
                fmt::format("{}: here the file has more than {} bytes or {} rows of problems; split it", place,
                            kMostBytesOfProblems, kMostProblems));
        }
        ProblemLine line{std::string(row.text), {}, row.number, row.line, row.inArray};
        line.key = promptKey(problemOfLine(line, path, options));
        lines.push_back(std::move(line));
    });
    if (lines.empty()) {
        throw base::BadInput(path +
                             ": there is no problem; write a JSON object such as {\"prompt\": \"...\"} on each line");
    }
    return lines;
}

using PromptKeys = std::unordered_set<std::string_view>;

class FileSource final : public ProblemSource {
public:
    explicit FileSource(const ProblemFileOptions& options)
        : options_(options), rows_{options.checker, options.raw, options.vocab},
          lines_(readProblemLines(options.path, rows_)) {
        PromptKeys asked;
        if (options_.evaluationPath.empty()) {
            asked = holdBack();
        } else {
            evaluationLines_ = readProblemLines(options_.evaluationPath, rows_);
            for (const ProblemLine& line : evaluationLines_) {
                evaluation_.push_back(&line);
                asked.insert(line.key);
            }
        }
        for (const ProblemLine& line : lines_) {
            if (!asked.contains(line.key)) {
                training_.push_back(&line);
            }
        }
        const auto left = static_cast<std::int64_t>(lines_.size() - training_.size());
        if (!training_.empty() && !options_.evaluationPath.empty() && left > 0) {
            base::logWarning(fmt::format("{}: {} of its {} have prompts that are in {} too, and are not trained on",
                                         options_.path, left, base::countText(std::ssize(lines_), "problem"),
                                         options_.evaluationPath));
        }
        if (training_.empty()) { // where rows are held back, one prompt is left at least
            throw base::BadInput(fmt::format("{}: all its prompts are in {} too; give other problems to train on",
                                             options_.path, options_.evaluationPath));
        }
    }

    Problem training(std::int64_t number) const override {
        const auto count = static_cast<std::int64_t>(training_.size());
        const std::int64_t place = order(number / count)->at(base::toIndex(number % count));
        return problemOfLine(*training_[base::toIndex(place)], options_.path, rows_);
    }
    std::int64_t evaluations() const override { return static_cast<std::int64_t>(evaluation_.size()); }
    Problem evaluation(std::int64_t number) const override {
        const std::string& path = options_.evaluationPath.empty() ? options_.path : options_.evaluationPath;
        return problemOfLine(*evaluation_.at(base::toIndex(number)), path, rows_);
    }
    double reward(const Problem& problem, const std::string& answer) const override {
        const nlohmann::json* const expected = expectedOf(*problem.facts);
        if (options_.checker == nullptr || expected == nullptr) {
            throw base::Internal("a file of problems without a checker cannot judge");
        }
        return options_.checker->judge(*expected, answer);
    }
    bool judges() const override { return options_.checker != nullptr; }
    /// Not of the paths: a file may be moved.
    std::string digest() const override {
        base::Sha256 sha;
        sha.add(fmt::format("problems seed {} held back {} raw {} checker {} evaluation {}\n", options_.seed,
                            options_.heldBack, options_.raw,
                            options_.checker == nullptr ? "none" : options_.checker->name, evaluationLines_.size()));
        for (const std::vector<ProblemLine>* const lines : {&lines_, &evaluationLines_}) {
            for (const ProblemLine& line : *lines) {
                sha.add(fmt::format("{} {}:", line.number, line.text.size()));
                sha.add(line.text);
            }
        }
        return sha.hex();
    }

private:
    /// Chooses the problems of the evaluation, and all rows with their prompts are left out of training.
    PromptKeys holdBack() {
        PromptKeys prompts, held;
        std::vector<const ProblemLine*> different;
        for (const ProblemLine& line : lines_) {
            if (prompts.insert(line.key).second) {
                different.push_back(&line);
            }
        }
        const auto count = static_cast<std::int64_t>(different.size());
        if (options_.heldBack < 0 || options_.heldBack >= count) {
            throw base::BadInput(fmt::format("{}: {} cannot be held back from {} with different prompts; hold back "
                                             "fewer, so that one is left to train on",
                                             options_.path, base::countText(options_.heldBack, "problem"), count));
        }
        const auto order = randomPermutation(count, seedKey(options_.seed, SeedStream::DataSplit), 0);
        for (std::int64_t i = 0; i < options_.heldBack; ++i) {
            evaluation_.push_back(different[base::toIndex(order[base::toIndex(i)])]);
            held.insert(evaluation_.back()->key);
        }
        return held;
    }

    using Order = std::shared_ptr<const std::vector<std::int64_t>>;

    /// The order of an epoch. The last one is kept: making it takes time for each row.
    Order order(std::int64_t epoch) const {
        const std::lock_guard lock(orderMutex_);
        if (order_ == nullptr || orderEpoch_ != epoch) {
            order_ = std::make_shared<const std::vector<std::int64_t>>(
                randomPermutation(static_cast<std::int64_t>(training_.size()),
                                  seedKey(options_.seed, SeedStream::DataOrder), static_cast<std::uint64_t>(epoch)));
            orderEpoch_ = epoch;
        }
        return order_;
    }

    const ProblemFileOptions options_;
    const ProblemRowOptions rows_;
    const std::vector<ProblemLine> lines_;
    std::vector<ProblemLine> evaluationLines_;   ///< of evaluationPath
    std::vector<const ProblemLine*> training_;   ///< of lines_
    std::vector<const ProblemLine*> evaluation_; ///< of lines_ or evaluationLines_
    mutable std::mutex orderMutex_;
    mutable Order order_; ///< with orderEpoch_, under orderMutex_
    mutable std::int64_t orderEpoch_ = 0;
};

} // namespace

std::unique_ptr<ProblemSource> problemFile(const ProblemFileOptions& options) {
    return std::make_unique<FileSource>(options);
}

} // namespace vitrine::engine
