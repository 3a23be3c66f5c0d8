// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sums over the rows of a matrix: gradients of biases, and the last step of other sums over rows.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// out = the sum of the rows of x, or out += that sum. Without rows the sum is zero. Parts of the rows are summed, then
/// the parts; their number depends on the shape only.
struct SumRows {
    static constexpr std::string_view kName = "SumRows";
    TensorView x;            ///< (rows, n); rows may have a stride
    TensorView out;          ///< (n) F32 or F64
    bool accumulate = false; ///< add to out
    TensorView scratch;
};

void check(const SumRows& op);
Cost cost(const SumRows& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const SumRows& op, const DeviceTraits& traits);
void execute(CpuContext& context, const SumRows& op);
/// Throws Unsupported for F64.
void execute(CudaContext& context, const SumRows& op);

} // namespace vitrine::kernels
