// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a training run writes so that it can go on later exactly as if it had never stopped: a folder with
//   trainer_state.json         the step, the losses so far, the options that must be the same
//   trainer_state.safetensors  the tensors of TrainedState::pieces()
// The folder appears under its name only when it is complete.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

class TrainedState;

/// Writes OUTPUT/checkpoint-STEP. `progress` is an object that the run reads back. Returns the folder. Throws BadInput
/// when the disk is full, the place cannot be written, or somebody else's files are there.
std::string writeTrainingCheckpoint(const std::string& output, std::int64_t step, kernels::Context& context,
                                    const TrainedState& state, const nlohmann::json& progress);

/// Bytes of the tensors that writeTrainingCheckpoint() writes.
std::uint64_t trainingCheckpointBytes(const TrainedState& state);
/// How many checkpoints a run adds to its folder at most at the same time: one after each `every` steps from `first` to
/// `last`, of which the `keep` latest stay (0: all) beside the one that is being written. `there`: those of earlier
/// runs, which count among the kept.
std::int64_t checkpointsAtOnce(std::int64_t first, std::int64_t last, std::int64_t every, std::int64_t keep,
                               std::int64_t there);

/// Deletes all but the `count` latest complete checkpoints of OUTPUT up to `step`. Later ones, those with other files
/// in them and what cannot be deleted stay. Returns the steps of those that were deleted, earliest first.
std::vector<std::int64_t> keepLatestCheckpoints(const std::string& output, std::int64_t count, std::int64_t step);

/// The checkpoint that `folder` means: itself, or the latest of its checkpoint-N. Throws BadInput where there is none.
std::string findTrainingCheckpoint(const std::string& folder);
/// Its trainer_state.json. Throws BadInput "FILE: FIELD: what".
nlohmann::json readTrainingProgress(const std::string& checkpoint);
/// Reads the tensors into the state. Throws BadInput "FILE: TENSOR: what" when they do not fit it.
void readTrainedState(const std::string& checkpoint, kernels::Context& context, TrainedState& state);

} // namespace vitrine::engine
