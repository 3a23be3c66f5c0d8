// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What must be the same where a training goes on: the options that bear on the trained values, the data and the base
// model. A checkpoint keeps these terms, and a run that goes on from it is compared with them.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/checkpoint/checkpoint.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

class FinetuneModel;

enum class ResumeRule {
    Same,     ///< must be the same
    OfBranch, ///< may differ in a branch, which has another output folder; it is said
    Contents, ///< names a file or folder, whose contents must be the same
    Free,     ///< may differ: it changes values by rounding at most, or what is written
};
/// Of an option of a workload that trains.
ResumeRule resumeRule(std::string_view option);

/// The day that prompts of the run take for today, YYYY-MM-DD: that of the checkpoint that the run goes on from, or
/// that of the clock. Throws BadInput for a checkpoint that cannot be read.
std::string dayOfTraining(const Experiment& spec);

/// What a run trains on.
struct TrainedRows {
    std::string digest; ///< SHA-256 of all that bears on the trained values
    std::int64_t microBatch = 0;
    std::int64_t steps = 0; ///< of the run
};

/// The terms of a run. Reads its files. Throws Cancelled.
nlohmann::json resumeTerms(const Run& run, const ModelSource& source, FinetuneModel& model, const TrainedRows& rows);

/// Throws BadInput "CHECKPOINT: what" for the first term that differs and must not. Warns of those that may, and of a
/// checkpoint without terms, whose `before` is null.
void checkResumeTerms(const nlohmann::json& before, const nlohmann::json& now, const std::string& checkpoint,
                      bool branch);

} // namespace vitrine::engine
