// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// RMSNorm (Zhang and Sennrich 2019): y = x * rsqrt(mean(x^2) + eps) in float32, then the weight in one of three orders.

#include "kernels/core/layer_forms.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// Normalises rows of the last dimension; x and out may be the same memory.
struct RmsNorm {
    static constexpr std::string_view kName = "RmsNorm";
    TensorView x;      ///< (rows, dim); rows may have a stride
    TensorView weight; ///< (dim)
    TensorView out;    ///< (rows, dim)
    float eps = 1e-5F;
    RmsNormOrder form = RmsNormOrder::CastThenScale;
};

void check(const RmsNorm& op);
Cost cost(const RmsNorm& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const RmsNorm& op, const DeviceTraits& traits);
void execute(CpuContext& context, const RmsNorm& op);
void execute(CudaContext& context, const RmsNorm& op);

} // namespace vitrine::kernels
