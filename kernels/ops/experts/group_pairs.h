// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows of a mixture of experts, expert by expert. A pair is one token's choice of one expert: pair t * k + j for choice
// j of token t. Sorted by expert (ascending, stable) pairs become rows, so that an expert's rows lie together and a
// product takes them as one matrix. Training works on such rows; kernels/ops/experts/grouped_matmul.h multiplies them.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// Sorts the pairs by expert. Pairs of kOtherRanksExpert come last.
struct GroupPairs {
    static constexpr std::string_view kName = "GroupPairs";
    TensorView ids;    ///< (tokens, k) I32
    TensorView starts; ///< (experts + 1) I32 out: the first row of each expert, and the number of rows
    TensorView pairs;  ///< (tokens * k) I32 out: the pair of each row
    TensorView places; ///< (tokens * k) I32 out: the row of each pair
    TensorView scratch;
};

/// out[row] = x[pairs[row] / k]: what each expert reads of its tokens.
struct GatherPairs {
    static constexpr std::string_view kName = "GatherPairs";
    TensorView x;     ///< (tokens, n), rows may have a stride
    TensorView pairs; ///< (tokens * k) I32
    TensorView out;   ///< (tokens * k, n) of x's dtype
};

void check(const GroupPairs& op);
Cost cost(const GroupPairs& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const GroupPairs& op, const DeviceTraits& traits);
void execute(CpuContext& context, const GroupPairs& op);
void execute(CudaContext& context, const GroupPairs& op);

void check(const GatherPairs& op);
Cost cost(const GatherPairs& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const GatherPairs& op, const DeviceTraits& traits);
void execute(CpuContext& context, const GatherPairs& op);
void execute(CudaContext& context, const GatherPairs& op);

} // namespace vitrine::kernels
