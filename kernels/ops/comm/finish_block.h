// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The end of a block whose weights are divided among ranks: each has a part of the sum that the block gives.

#include "kernels/core/communicator.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/ops/linear/linear_view.h"

namespace vitrine::kernels {

/// out = residual + postNorm(the sum of every rank's partial). A bias is part of one rank's partial.
struct FinishBlock {
    static constexpr std::string_view kName = "FinishBlock";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Comm;
    TensorView partial;   ///< (tokens, hidden), contiguous; holds the sum afterwards
    NormWeights postNorm; ///< Gemma2, or empty
    TensorView residual;  ///< (tokens, hidden), the same on every rank
    TensorView out;       ///< (tokens, hidden); may be residual
    Communicator* communicator = nullptr;
    TensorView scratch;
};

void check(const FinishBlock& op);
Cost cost(const FinishBlock& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const FinishBlock& op, const DeviceTraits& traits);
void execute(CpuContext& context, const FinishBlock& op);
void execute(CudaContext& context, const FinishBlock& op);
void execute(MetaContext& context, const FinishBlock& op);

} // namespace vitrine::kernels
