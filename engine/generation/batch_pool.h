// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sizes of a batch: its pool of pages and its rows.

#include "engine/generation/scheduler.h"
#include "engine/model/model.h"

namespace vitrine::engine {

/// Rows of a step of `rows` single tokens once it is filled up: few different numbers, so that few captured graphs
/// serve all of them. Never more than `slots` where `rows` is not.
std::int32_t bucketRows(std::int32_t rows, std::int32_t slots);

/// Ids that a step leaves on the device for the next one, in two halves that take turns: I32, (2, carriedRows).
std::int64_t carriedRows(const SchedulerOptions& scheduler);

/// Whether requests that lose their place have their pages moved to the host.
bool swaps(const SchedulerOptions& scheduler);

/// What is known of the requests that will come.
struct Expected {
    std::int64_t longestPrompt = 0, longestSequence = 0; ///< tokens; 0: not known
    std::int64_t mostForbidden = 0;                      ///< ids that one of them forbids
};

/// Decides before the first step what its pool and its steps may have of the memory that is free, so that a run fails
/// there or not at all; equal on every backend with the same traits, and never fewer pages with more memory.
///
/// Fills in poolPages, poolSequences and tableTokens where they are 0: what all slots can come to with sequences of
/// `longestSequence` tokens (unknown: as many as the model was made for), with shared prefixes of unknown requests all
/// that there is, but no more than 85 % of what is free (the rest is for the steps). Where steps of
/// `scheduler.tokenBudget` tokens do not fit beside the pool that becomes what they may have: half of it, and so on,
/// until they take 15 % or what the pool leaves; fewer than slots only where the longest sequence (an unknown one: of
/// 4096 tokens) would find no pages. A pool that is as large as smaller steps let it be has no more pages than the next
/// larger steps would leave it.
///
/// True: memory is short, what the steps need was taken and the pool has to be backed before the first of them. Throws
/// OutOfMemory where not even a step of one token fits.
bool fitBatch(KvCacheOptions& cache, SchedulerOptions& scheduler, Model& model, const Expected& expected);

/// Pages of any group that so many bytes of host memory hold.
std::int64_t swapPagesIn(std::uint64_t bytes, const ModelConfig& config, const KvCacheOptions& cache);

} // namespace vitrine::engine
