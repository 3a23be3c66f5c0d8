// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products with weights of any format: out = scale x W^T + bias (+ residual).

#include "kernels/core/op.h"
#include "kernels/core/weight_view.h"
#include "kernels/ops/linear/adapter_view.h"

namespace vitrine::kernels {

struct Matmul {
    static constexpr std::string_view kName = "Matmul";
    TensorView x;        ///< (rows, in)
    WeightView weight;   ///< a single matrix (out, in)
    TensorView bias;     ///< (out) or empty
    TensorView residual; ///< (rows, out) or empty; may be the same memory as out
    TensorView out;      ///< (rows, out), may have a row stride
    TensorView scratch;
    AdapterView adapter; ///< or empty: adds adapter.scale (x A^T) B^T, rounded to the type of x in between
    float scale = 1;     ///< of x W^T; the adapter has a scale of its own
};

void check(const Matmul& op);
Cost cost(const Matmul& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them. With less than a GPU's traits ask for, more than
/// 16 BF16 rows by a packed weight are multiplied in float32 arithmetic, which is slow.
std::uint64_t scratch(const Matmul& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Matmul& op);
void execute(CudaContext& context, const Matmul& op);

} // namespace vitrine::kernels
