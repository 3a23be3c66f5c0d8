// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The output folder of a fine-tuning run while it goes on: what an earlier training left there, the files of metrics,
// and checkpoints.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/training/files/metric_files.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

class TrainedState;

class TrainingOutput {
public:
    /// Touches nothing yet. Without an output folder, or where the device computes no values, nothing is written.
    TrainingOutput(const Run& run, const ModelSource& source, bool computesValues);

    bool isWritten() const { return written_; }
    /// Takes the folder over for steps from `firstStep` on: with overwrite an earlier training's files are removed.
    /// Throws BadInput for what is in the way.
    void begin(std::int64_t firstStep, std::int64_t steps);
    /// Locks the folder anew where it vanished meanwhile. Throws BadInput where it cannot be made again, or another run
    /// has taken it.
    void holdFolder() const;
    /// Throws as holdFolder() does. `values`: loss, learning rate, norm of the gradients, tokens per second.
    void writeStep(std::int64_t step, std::span<const double> values);
    void writeEvaluation(std::int64_t step, double loss);
    /// Writes a checkpoint. Returns the steps of those that were deleted for it. Where the folder cannot be written,
    /// the checkpoint goes to the folder for temporary files, and BadInput says so.
    std::vector<std::int64_t> save(std::int64_t step, kernels::Context& context, const TrainedState& state,
                                   const nlohmann::json& progress);

private:
    void open(std::int64_t firstStep);
    void removeLeftOvers() const;
    [[noreturn]] void saveElsewhere(const base::Error& why, std::int64_t step, kernels::Context& context,
                                    const TrainedState& state, const nlohmann::json& progress) const;
    void removeEarlier(std::int64_t firstStep) const;
    void requireFreePlaces(std::int64_t firstStep, std::int64_t steps) const;
    std::vector<std::string> resultFiles() const;

    const Run& run_;
    const ModelSource& source_;
    std::string folder_;
    bool written_ = false;
    std::unique_ptr<MetricTable> table_; ///< null before begin(), as the next
    std::unique_ptr<TensorBoardFile> board_;
};

} // namespace vitrine::engine
