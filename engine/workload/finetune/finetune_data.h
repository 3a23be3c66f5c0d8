// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rows that a fine-tuning run trains on, as its options name them.

#include <cstdint>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/training/training_batch.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Immutable. Each sequence is one row, or several packed ones.
struct FinetuneData {
    std::vector<TrainingBatch> training;
    std::vector<TrainingBatch> validation;
    std::int64_t batch = 1; ///< sequences of a micro-batch

    /// Micro-batch `micro` of step `step` (from 1) where a step has `perStep`. The sequences come in their order,
    /// and begin again after the last one.
    TrainingBatch microBatch(std::int64_t step, std::int64_t micro, std::int64_t perStep) const;
    std::int64_t longestSequence() const;
};

/// Reads what the options name. Throws BadInput "FILE: what".
FinetuneData makeFinetuneData(const Run& run, const ModelSource& source);

} // namespace vitrine::engine
