// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The output folder of a training while it goes on: what an earlier training left there, the files of metrics, and
// checkpoints.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/checkpoint/folder_lock.h"
#include "engine/training/files/metric_files.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

class TrainedState;

struct TrainingOutputOptions {
    std::string folder; ///< empty: nothing is written
    std::string resume; ///< what the run goes on from: a checkpoint, a folder of some, or empty
    bool overwrite = false;
    std::int64_t saveEvery = 0;       ///< steps; 0: checkpoints at no fixed steps
    std::int64_t keepCheckpoints = 0; ///< the latest ones; 0: all
    /// Of each step, in metrics.csv and, under "train/", for TensorBoard.
    std::vector<std::string> columns;
    std::string evaluation = "loss"; ///< what writeEvaluation() gets: "eval/loss" for TensorBoard
    /// A last column "eval_loss" of metrics.csv has it too. The evaluation after a step comes before writeStep() then;
    /// one before the first step has a row of its own.
    bool evaluationColumn = false;
    std::vector<std::string> resultFiles; ///< that the run writes at its end, from the folder on
    std::span<FolderLock> locks;          ///< of the folder; they outlive the output
};

class TrainingOutput {
public:
    /// Touches nothing yet.
    explicit TrainingOutput(TrainingOutputOptions options);

    bool isWritten() const { return !options_.folder.empty(); }
    const TrainingOutputOptions& options() const { return options_; }
    /// Takes the folder over for steps from `firstStep` on: with overwrite an earlier training's files are removed, and
    /// always those of one that wrote no checkpoint.
    /// Throws BadInput for what is in the way.
    void begin(std::int64_t firstStep, std::int64_t steps);
    /// Locks the folder anew where it vanished meanwhile. Throws BadInput where it cannot be made again, or another run
    /// has taken it.
    void holdFolder() const;
    /// Throws as holdFolder() does. `values`: one for each column; NaN where a step has none.
    void writeStep(std::int64_t step, std::span<const double> values);
    void writeEvaluation(std::int64_t step, double value);
    /// Writes a checkpoint. Returns the steps of those that were deleted for it. Where the folder cannot be written,
    /// the checkpoint goes to the folder for temporary files, and BadInput says so.
    std::vector<std::int64_t> save(std::int64_t step, kernels::Context& context, const TrainedState& state,
                                   const nlohmann::json& progress);

private:
    void open(std::int64_t firstStep);
    void writeRow(std::int64_t step, std::span<const double> values);
    void removeLeftOvers() const;
    [[noreturn]] void saveElsewhere(const base::Error& why, std::int64_t step, kernels::Context& context,
                                    const TrainedState& state, const nlohmann::json& progress) const;
    void removeEarlier(std::int64_t firstStep) const;
    void requireFreePlaces(std::int64_t firstStep, std::int64_t steps) const;

    TrainingOutputOptions options_;
    std::int64_t evaluatedStep_ = -1; ///< of the last evaluation
    double evaluated_ = 0;
    std::unique_ptr<MetricTable> table_; ///< null before begin(), as the next
    std::unique_ptr<TensorBoardFile> board_;
};

} // namespace vitrine::engine
