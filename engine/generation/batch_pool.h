// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sizes of a batch: its pool of pages and its rows.

#include "engine/generation/scheduler.h"
#include "engine/model/model.h"

namespace vitrine::engine {

/// Rows of a step of `rows` single tokens once it is filled up: few different numbers, so that few captured graphs serve
/// all of them. Never more than `slots` where `rows` is not.
std::int32_t bucketRows(std::int32_t rows, std::int32_t slots);

/// The most that a pool for the scheduler's slots may come to: what sequences of up to `longestPrompt` and `longestSequence` tokens
/// (0: of as many as the model was made for) can come to, with shared prefixes of unknown requests no less than memory has room
/// for; never more than 85 % of what is free of the context's budget (the rest is for the steps). Fills in poolPages,
/// poolSequences and tableTokens where they are 0.
void poolFor(KvCacheOptions& cache, const SchedulerOptions& scheduler, Model& model, std::int64_t longestPrompt,
             std::int64_t longestSequence);

/// Where pool and steps together are too large for what is free, or nearly so: `scheduler.tokenBudget` becomes what steps may have (half of
/// it, and so on, until they take 15 % or what the pool leaves; fewer than slots only where the longest sequence would find no
/// pages), memory for such steps is taken at once, and the pool becomes what is left. True then: the pool has to be backed
/// before the first step, so that a run fails there or not at all. `longestSequence`: tokens, from 1. Throws OutOfMemory where
/// not even a step of one token fits.
bool fitSteps(KvCacheOptions& cache, SchedulerOptions& scheduler, Model& model, std::int64_t longestSequence);

/// Pages of any group that so many bytes of host memory hold.
std::int64_t swapPagesIn(std::uint64_t bytes, const ModelConfig& config, const KvCacheOptions& cache);

} // namespace vitrine::engine
