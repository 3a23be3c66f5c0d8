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

/// The gradients of x and of the weight. The factor of a row is made anew from x. The rounding of CastThenScale counts
/// as no change, so the first two orders have the same gradients.
struct RmsNormBackward {
    static constexpr std::string_view kName = "RmsNormBackward";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    RmsNorm forward;         ///< x, weight, eps and form; its out is not read and may be empty
    TensorView gradOut;      ///< (rows, dim); rows may have a stride
    TensorView gradResidual; ///< (rows, dim) or empty: added to gradX; may be the same memory as gradX
    TensorView gradX;        ///< (rows, dim); may be the same memory as gradOut or gradResidual
    TensorView gradWeight;   ///< (dim) F32 or F64, or empty: not wanted. Gradients are added to it
    TensorView scratch;
};

void check(const RmsNormBackward& op);
Cost cost(const RmsNormBackward& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const RmsNormBackward& op, const DeviceTraits& traits);
void execute(CpuContext& context, const RmsNormBackward& op);
/// Throws Unsupported for F64, and for rows of more than 16384 elements.
void execute(CudaContext& context, const RmsNormBackward& op);

} // namespace vitrine::kernels
