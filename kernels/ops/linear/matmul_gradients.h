// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The two products of Matmul's backward pass. Matmul computes out = x W^T; with gradOut, the gradient of out, the
// gradient of x is gradOut W and the gradient of W is gradOut^T x. Both can add to what is there, so that the gradients
// of several uses, or of several small batches, sum up.
//
// Products are summed in float32 (in double when gradOut is F64) and rounded once. On the CPU results do not depend on
// the number of threads.

#include "kernels/core/op.h"
#include "kernels/core/weight_view.h"

namespace vitrine::kernels {

/// gradX = scale gradOut W, or gradX += scale gradOut W.
struct MatmulInputGradient {
    static constexpr std::string_view kName = "MatmulInputGradient";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    TensorView gradOut;      ///< (rows, out), may have a row stride
    WeightView weight;       ///< a single matrix (out, in). Packed: gradOut is not F64
    TensorView gradX;        ///< (rows, in), may have a row stride
    bool accumulate = false; ///< add to gradX
    TensorView scratch;
    float scale = 1;
};

void check(const MatmulInputGradient& op);
Cost cost(const MatmulInputGradient& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const MatmulInputGradient& op, const DeviceTraits& traits);
void execute(CpuContext& context, const MatmulInputGradient& op);
/// Throws Unsupported for dtypes that Matmul does not multiply on a GPU.
void execute(CudaContext& context, const MatmulInputGradient& op);

/// gradWeight = gradOut^T x, or gradWeight += gradOut^T x. Without rows the product is zero. A weight that is stored
/// (in, out) has its gradient stored so when x and gradOut change places.
struct MatmulWeightGradient {
    static constexpr std::string_view kName = "MatmulWeightGradient";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Gradients;
    TensorView x;            ///< (rows, in), may have a row stride
    TensorView gradOut;      ///< (rows, out), may have a row stride
    TensorView gradWeight;   ///< (out, in), may have a row stride
    bool accumulate = false; ///< add to gradWeight
};

void check(const MatmulWeightGradient& op);
Cost cost(const MatmulWeightGradient& op, const DeviceTraits& traits);
/// 0: this op needs no scratch.
std::uint64_t scratch(const MatmulWeightGradient& op, const DeviceTraits& traits);
void execute(CpuContext& context, const MatmulWeightGradient& op);
/// Throws Unsupported unless x and gradOut have one dtype and gradWeight has that dtype or is F32.
void execute(CudaContext& context, const MatmulWeightGradient& op);

} // namespace vitrine::kernels
