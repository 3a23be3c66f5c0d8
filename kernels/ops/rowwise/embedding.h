// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Embedding lookup: out[t] = scale * table[ids[t]].

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

struct Embedding {
    static constexpr std::string_view kName = "Embedding";
    TensorView ids;   ///< (tokens) I32, every id inside the table
    TensorView table; ///< (vocab, hidden)
    TensorView out;   ///< (tokens, hidden)
    float scale = 1;  ///< Gemma: sqrt(hidden), rounded to the compute dtype by the caller
    /// The table is a part of a larger one, from this id on; tokens of other parts get zeros. -1: it is whole.
    std::int64_t firstId = -1;
};

void check(const Embedding& op);
Cost cost(const Embedding& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Embedding& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Embedding& op);
void execute(CudaContext& context, const Embedding& op);

/// gradTable[id] += scale * the sum of gradOut over the tokens of that id, in the order of `order`.
struct EmbeddingGradient {
    static constexpr std::string_view kName = "EmbeddingGradient";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    TensorView order;     ///< (tokens) I32: numbers of tokens, sorted by their id; tokens of one id in their own order
    TensorView ids;       ///< (tokens) I32, every id inside the table
    TensorView gradOut;   ///< (tokens, hidden); rows may have a stride
    TensorView gradTable; ///< (vocab, hidden) F32 or F64; rows may have a stride
    float scale = 1;
};

void check(const EmbeddingGradient& op);
Cost cost(const EmbeddingGradient& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const EmbeddingGradient& op, const DeviceTraits& traits);
void execute(CpuContext& context, const EmbeddingGradient& op);
/// Throws Unsupported for F64.
void execute(CudaContext& context, const EmbeddingGradient& op);

} // namespace vitrine::kernels
