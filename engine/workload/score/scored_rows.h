// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rows that `score` looks at, as micro-batches, and their scores in the shape of the rows.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/rl/policy/policy_batches.h"
#include "engine/training/passes/log_prob_objective.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

struct ScoredRows {
    std::string file;
    bool fromTensors = false; ///< the file has the tensor input_ids
    std::int64_t rows = 0, width = 0;
    std::vector<std::int32_t> ids;     ///< (rows, width), 0 after the end of a row
    std::vector<std::int32_t> lengths; ///< (rows), of which not all need be scored
    PolicyBatches batches;             ///< places are those of (rows, width)
};

/// The file of the option `data`: safetensors as engine/rl/policy/rollouts.h has it, or rows of text as `finetune` takes them.
/// Of those all are scored, with duplicates and with rows that no token counts of. Throws BadInput and Unsupported
/// "FILE: line N: what" or "FILE: TENSOR: what".
ScoredRows readScoredRows(const Run& run, const ModelSource& source);

/// Scores of all tokens.
struct RowScores {
    std::vector<float> logProbs, entropies; ///< (rows, width); 0 where nothing was scored
    std::vector<std::int32_t> scored;       ///< (rows, width): 1 where something was
};
RowScores rowScores(const ScoredRows& rows, const LogProbObjective& scores);

/// Writes the option `output`: what the file has, beside the log-probabilities under the name of the option
/// score_tensor, and entropies.
void writeScores(const Run& run, const ScoredRows& rows, const RowScores& scores);

} // namespace vitrine::engine
