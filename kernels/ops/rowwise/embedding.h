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
};

void check(const Embedding& op);
Cost cost(const Embedding& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Embedding& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Embedding& op);
void execute(CudaContext& context, const Embedding& op);

} // namespace vitrine::kernels
