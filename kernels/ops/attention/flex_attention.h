// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Attention with programs, forward and backward: FlexAttention's semantics. Scores are q.k * scale, then the score
// program, then the mask; softmax over the allowed keys and, if present, the sink (a logit without value). A row that
// may see nothing gives 0 and LSE -inf (with a sink: 0 and the sink).

#include <vector>

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/program/attention_program.h"
#include "kernels/program/block_mask.h"

namespace vitrine::kernels {

/// Tensors of one float dtype, but for sinks, lse and scratch. q, k, v, out and the gradients may have any strides but
/// that of headDim: slices of one projection's rows, seen heads first (headsFirst), need no copy. The others are
/// contiguous. Query head h reads key head h / (heads / kvHeads). Computes in float for BF16 and F16, in double for F32
/// and F64.
struct FlexAttention {
    static constexpr std::string_view kName = "FlexAttention";
    TensorView q;    ///< (batch, heads, queries, headDim)
    TensorView k, v; ///< (batch, kvHeads, keys, headDim)
    BoundProgram score, mask;
    const BlockMask* blocks = nullptr; ///< of `mask` at these lengths. Null: the closed form of the mask's rows if it
                                       ///< has one, else every element is asked
    TensorView sinks;                  ///< (heads) of any float dtype, or empty
    float scale = 1;                   ///< the default of attention is 1 / sqrt(headDim)
    TensorView out;                    ///< (batch, heads, queries, headDim)
    TensorView lse; ///< (batch, heads, queries) F32, or F64 with F64 tensors; natural logarithm, sink included. May be
                    ///< empty
    TensorView scratch;
};

void check(const FlexAttention& op);
/// FLOPs: 4 headDim for each element of the non-empty blocks (128 x 128 without a BlockMask).
Cost cost(const FlexAttention& op, const DeviceTraits& traits);
std::uint64_t scratch(const FlexAttention& op, const DeviceTraits& traits);
void execute(CpuContext& context, const FlexAttention& op);
void execute(CudaContext& context, const FlexAttention& op);

/// Gradients of sum(out * gradOut). Bitwise the same for any number of threads.
struct FlexAttentionBackward {
    static constexpr std::string_view kName = "FlexAttentionBackward";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    FlexAttention forward;             ///< with the out and lse that it gave
    TensorView gradOut;                ///< as out
    TensorView dq, dk, dv;             ///< as q, k, v
    TensorView dSinks;                 ///< (heads) F32 or F64; empty: not wanted
    std::vector<TensorView> dCaptures; ///< for each capture of the score program an F32 or F64 tensor of its shape,
                                       ///< contiguous; empty views (or no vector) for those that are not wanted
    TensorView scratch;
};

void check(const FlexAttentionBackward& op);
/// 2.5 times the forward FLOPs.
Cost cost(const FlexAttentionBackward& op, const DeviceTraits& traits);
std::uint64_t scratch(const FlexAttentionBackward& op, const DeviceTraits& traits);
void execute(CpuContext& context, const FlexAttentionBackward& op);
void execute(CudaContext& context, const FlexAttentionBackward& op);

/// Elements (query, key) of the non-empty blocks over the whole batch and all heads, edge blocks clipped.
double computedElements(const FlexAttention& op);

} // namespace vitrine::kernels
