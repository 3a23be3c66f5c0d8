// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Attention over ragged batches and a paged cache (design section 6). Scores are q.k * scale, then the program's score
// change, then its mask; softmax in float32 over the allowed keys and, if present, the sink (a logit without value).
// A row that may see nothing gives 0 and LSE -inf.

#include "kernels/context.h"
#include "kernels/ops/kv_view.h"
#include "kernels/program/attention_program.h"
#include "kernels/tensor.h"

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
    TensorView newV;      ///< step's rows may see; then the cache holds only older tokens and these are read beside it
    TensorView sinks;     ///< (heads) or empty
    AttentionProgram program;
    float scale = 1;
    TensorView out; ///< (tokens, heads, headDim)
    TensorView lse; ///< (tokens, heads) F32 or empty: natural logarithm
    TensorView scratch;
};

void check(const Attention& op);
Cost cost(const Attention& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const Attention& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Attention& op);
void execute(CudaContext& context, const Attention& op);

} // namespace vitrine::kernels
