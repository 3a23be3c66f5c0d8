// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a training step makes smaller: a function of the logits, which exist for a chunk of tokens at a time. Each
// objective is a file: cross_entropy_objective.h (the next token), policy_objective.h (answers with advantages).

#include <cstdint>
#include <span>

#include "engine/model/op_runner.h"
#include "engine/training/data/training_batch.h"

namespace vitrine::engine {

/// Rows of logits, one for each token of a chunk.
struct LogitsChunk {
    kernels::TensorView logits;  ///< (tokens, vocab) F32, or F64 where the pass computes in it
    kernels::TensorView targets; ///< (tokens) I32, -1: the token does not count
    /// (tokens, vocab) of the type of activations, in the memory of the logits; empty: no gradient is wanted.
    kernels::TensorView gradLogits;
    std::int64_t begin = 0; ///< the first token's place in its batch
    float softCap = 0;      ///< of the logits, see kernels::CrossEntropy; 0: none
};

/// Used by one pass at a time, on the thread of its context. Steps come one after the other:
/// beginStep(), then for each micro-batch beginBatch() and run() for each of its chunks, then loss().
class Objective {
public:
    Objective() = default;
    virtual ~Objective() = default;
    Objective(const Objective&) = delete; // its sums are on the device
    Objective& operator=(const Objective&) = delete;

    /// A step over these micro-batches follows. Throws BadInput where none of their tokens counts.
    virtual void beginStep(std::span<const TrainingBatch> batches) = 0;
    /// The micro-batch with this place in the step follows.
    virtual void beginBatch(const OpRunner& runner, std::int64_t index) = 0;
    /// Adds what the chunk adds to the loss of the step, and writes the gradient of that loss where it is wanted.
    /// `runner` makes what it needs meanwhile.
    virtual void run(const OpRunner& runner, const LogitsChunk& chunk) = 0;
    /// Of the step. Waits for the device. 0 on Meta.
    virtual double loss() = 0;
};

/// Tokens of batches.
struct TokenCounts {
    std::int64_t tokens = 0;
    std::int64_t predicted = 0; ///< those that count for the loss
};

/// Throws BadInput where no token counts.
TokenCounts countTokens(std::span<const TrainingBatch> batches);

} // namespace vitrine::engine
