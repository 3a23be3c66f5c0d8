// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Clipping gradients by their norm: the sum of squares of all gradients, a tensor at a time, and the factor that
// follows from it. The factor stays on the device, where the optimizer reads it.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// out = the sum of x^2, or out += it. Squares are added in double, in an order that depends on the size of x only.
struct SquaredNorm {
    static constexpr std::string_view kName = "SquaredNorm";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Optimizer;
    TensorView x;            ///< floats of any shape, contiguous
    TensorView out;          ///< (1) F64
    bool accumulate = false; ///< add to out
    TensorView scratch;
};

void check(const SquaredNorm& op);
Cost cost(const SquaredNorm& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const SquaredNorm& op, const DeviceTraits& traits);
void execute(CpuContext& context, const SquaredNorm& op);
/// Throws Unsupported when x is F64.
void execute(CudaContext& context, const SquaredNorm& op);

/// norm = sqrt(squaredNorm) and scale = min(1, maxNorm / (norm + 1e-6)), as torch's clip_grad_norm_. A norm of NaN
/// makes the scale NaN.
struct ClipScale {
    static constexpr std::string_view kName = "ClipScale";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Optimizer;
    TensorView squaredNorm; ///< (1) F64
    float maxNorm = 0;      ///< 0: no clipping, scale is 1
    TensorView scale;       ///< (1) F32
    TensorView norm;        ///< (1) F32
};

void check(const ClipScale& op);
Cost cost(const ClipScale& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const ClipScale& op, const DeviceTraits& traits);
void execute(CpuContext& context, const ClipScale& op);
void execute(CudaContext& context, const ClipScale& op);

/// How SquaredNorm cuts n elements: part i is elements [i size, min(n, (i + 1) size)), the same on every backend. Its
/// sum goes to the scratch.
struct NormParts {
    std::int64_t count = 1;
    std::int64_t size = 0; ///< a multiple of 8
};
NormParts normParts(std::int64_t n);

} // namespace vitrine::kernels
