// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sizes of a batch: the pages of its pool and the rows of its steps.

#include "engine/generation/scheduler.h"
#include "engine/model/model.h"

namespace vitrine::engine {

/// The number of rows that a decode step of `rows` tokens is filled up to. There are only few such numbers, so that few
/// captured graphs serve all decode steps. When `rows` is at most `slots`, the result is at most `slots` too.
std::int32_t bucketRows(std::int32_t rows, std::int32_t slots);

/// Columns of the buffer (2, carriedRows) I32 in which steps leave their sampled ids on the device for the next step.
/// The two rows of the buffer take turns.
std::int64_t carriedRows(const SchedulerOptions& scheduler);

/// Whether the pages of a preempted request are moved to the host.
bool swaps(const SchedulerOptions& scheduler);

/// What is known about the requests that will come.
struct Expected {
    /// Tokens of a prompt, and of a prompt with its answer; 0: not known.
    std::int64_t longestPrompt = 0, longestSequence = 0;
    std::int64_t mostForbidden = 0; ///< the largest number of ids that one request forbids
    bool experts = false;           ///< steps report the experts of their tokens
};

/// Divides the free memory between the pool of pages and the steps, before the first step. So a run that lacks memory
/// fails here and not later. The result is the same on every backend with the same traits. More memory never gives
/// fewer pages.
///
/// Fills in poolPages, poolSequences and tableTokens where they are 0. The pool is then as large as all slots together
/// can need with sequences of `longestSequence` tokens; when that is unknown, of as many tokens as the model has
/// positions. With shared prefixes and unknown requests the pool has no such limit. In any case it takes at most 85 %
/// of the free memory.
///
/// Lowers scheduler.tokenBudget where steps of so many tokens do not fit beside the pool. The budget is halved
/// until the steps take at most 15 % of the free memory or fit beside the pool. It falls below one token for each slot
/// only when the pool could not hold the longest sequence otherwise (4096 tokens, when the length is unknown). A pool
/// beside smaller steps has no more pages than it would have beside the next larger steps.
///
/// Returns true when memory is short. The step arena then has its memory already, and the caller must map the memory of
/// the whole pool before the first step. Throws OutOfMemory when not even a step of one token fits.
bool fitBatch(KvCacheOptions& cache, SchedulerOptions& scheduler, Model& model, const Expected& expected);

/// How many pages `bytes` bytes of host memory hold, whichever KV group the pages belong to.
std::int64_t swapPagesIn(std::uint64_t bytes, const ModelConfig& config, const KvCacheOptions& cache);

} // namespace vitrine::engine
