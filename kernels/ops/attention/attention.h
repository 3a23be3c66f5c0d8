// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Attention of models: FlexAttention's semantics (kernels/ops/attention/flex_attention.h) over ragged batches and a
// paged cache. Scores are q.k * scale, then the score program, then the mask; softmax over the allowed keys and, if
// present, the sink (a logit without value). A row that may see nothing gives 0 and LSE -inf.
//
// Programs see logical indices: b is the sequence (its row of the block table), q_idx and kv_idx its positions. A mask
// whose rows are intervals in closed form (causal, windows, prefix) costs nothing beyond its interval. Of any other one
// the keys between the ends that analysis finds (all of them at worst) are asked once for all heads that agree; then
// tiles of keys that a row does not see are skipped, and elements of those that it sees whole are not asked again.
// Captured tensors are inputs of the step: no op that runs in the step before this one writes them, because kernels
// read them early.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/ops/attention/kv_view.h"
#include "kernels/program/attention_program.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kMaxHeadDim = 1024;

/// Rows of q of sequence b are offsets[b] .. offsets[b + 1] - 1, at logical positions lengths'end - count .. end - 1,
/// which `positions` repeats. Query head h reads key head h / (heads / kvHeads).
struct Attention {
    static constexpr std::string_view kName = "Attention";
    TensorView q;         ///< (tokens, heads, headDim); rows may have a stride
    TensorView offsets;   ///< (sequences + 1) I32
    TensorView positions; ///< (tokens) I32
    KvView cache;         ///< holds the new tokens already
    TensorView newK;      ///< (tokens, kvHeads, headDim) or empty: set when a ring no longer holds every key that this
    TensorView newV;      ///< step's rows may see; then the cache holds only older tokens and these are read beside it,
                     ///< as they are (QkvProject has rounded them to what the cache will hold). Beside a cache that is
                     ///< no ring they may be given too: it holds the same numbers, and an op reads either
    TensorView sinks; ///< (heads) or empty
    BoundProgram score, mask;
    float scale = 1;
    TensorView out; ///< (tokens, heads, headDim)
    TensorView lse; ///< (heads, tokens) F32 or empty: natural logarithm, in the order that FlexAttentionBackward reads
    TensorView scratch;
};

void check(const Attention& op);
/// Rows count for the keys between the ends of their intervals, as far as shapes and `cache.totalTokens` say where rows
/// lie.
Cost cost(const Attention& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const Attention& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Attention& op);
void execute(CudaContext& context, const Attention& op);

} // namespace vitrine::kernels
