// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// AdamW (Loshchilov and Hutter 2019), as torch.optim.AdamW computes it: with g the gradient times gradScale and t the
// step,
//   p *= 1 - learningRate weightDecay
//   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
//   p -= learningRate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// Updates a parameter and its moments in place. All tensors are contiguous and have as many elements, in any shapes.
struct AdamW {
    static constexpr std::string_view kName = "AdamW";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Optimizer;
    TensorView parameter; ///< (n) floats: what the forward pass reads
    TensorView master;    ///< (n) F32: it is updated, and parameter becomes its rounding; empty: parameter is updated
    TensorView gradient;  ///< (n) floats
    TensorView moment1;   ///< (n) F32, or F64 with an F64 parameter
    TensorView moment2;   ///< (n) as moment1
    TensorView gradScale; ///< (1) F32: multiplies the gradient; empty: 1
    double learningRate = 0;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weightDecay = 0.01;
    std::int64_t step = 1; ///< from 1
};

void check(const AdamW& op);
Cost cost(const AdamW& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const AdamW& op, const DeviceTraits& traits);
void execute(CpuContext& context, const AdamW& op);
/// Throws Unsupported for F64.
void execute(CudaContext& context, const AdamW& op);

} // namespace vitrine::kernels
