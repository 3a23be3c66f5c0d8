// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rows that a fine-tuning run trains on, as its options name them.

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/training/data/data_order.h"
#include "engine/training/data/data_rows.h"
#include "engine/training/data/packing.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Sequences in memory and the order in which steps take them. Each sequence is one row, or several packed ones.
class FinetuneData {
public:
    /// Takes what prepareData() makes of the options. Throws what it throws.
    FinetuneData(const Run& run, const ModelSource& source);

    /// The micro-batches of a step (from 1). Empty ones are left out.
    std::vector<TrainingBatch> batches(std::int64_t step);
    /// Steps of the run: what the option says, or those of its epochs.
    std::int64_t steps() const { return steps_; }
    const std::vector<TrainingBatch>& validation() const { return validation_; }
    /// Tokens of the largest micro-batch.
    std::int64_t largestBatch() const;
    std::int64_t microBatch() const { return microBatch_; } ///< sequences
    /// SHA-256 of the tokens of all sequences, of those that validate too, and of which are trained.
    std::string rowsDigest() const;
    /// rows, sequences, cut_rows, cut_tokens, cut_lines, validation_rows, ...
    void addMetrics(nlohmann::json& metrics) const;

private:
    void makeOrder(const Run& run, bool shuffle);

    PackingResult packed_;
    std::vector<LeftOutRow> leftOut_;
    std::array<std::int64_t, kLeftOutReasons> leftOutCounts_{};
    std::vector<TrainingBatch> validation_;
    std::int64_t validationRows_ = 0;
    std::int64_t microBatch_ = 1;   ///< sequences
    std::int64_t microBatches_ = 1; ///< of a step
    std::int64_t steps_ = 0;
    DataOrderOptions order_;
};

} // namespace vitrine::engine
