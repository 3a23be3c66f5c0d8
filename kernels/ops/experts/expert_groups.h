// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// ExpertMatmul's scratch, and the (token, choice) pairs of each expert in it.

#include <cstdint>

#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/experts/moe.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kMaxExperts = 4096;
/// Up to this many tokens a step keeps prepared rows of x and multiplies by dot products; above, tiles pay.
inline constexpr std::int64_t kFewExpertTokens = 64;

struct ExpertScratch {
    ExpertScratch(const ExpertMatmul& op, ScratchLayout layout);

    TensorView prepared; ///< F32, rows of x as the kernels read them, or empty
    TensorView pairs;    ///< I32 (tokens * k): pair numbers, expert by expert, ascending inside
    TensorView starts;   ///< I32 (experts + 1): where each expert's pairs begin
    std::uint64_t bytes = 0;
};

/// Sorts the numbers of the pairs of `ids` (tokens, k) by expert, ascending inside: fills `starts` (experts + 1) and
/// `pairs` (tokens * k), both I32. Pairs of kOtherRanksExpert come last. Throws Internal for an
/// expert number that cannot be.
void groupPairs(const TensorView& ids, const TensorView& starts, const TensorView& pairs);

} // namespace vitrine::kernels
