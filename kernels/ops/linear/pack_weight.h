// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Weights to packed ones, in place: what quantization-aware training does to its masters, or to a weight and the
// adapter beside it, after each update.

#include <span>

#include "kernels/core/op.h"
#include "kernels/core/weight_view.h"
#include "kernels/formats/integer_rounding.h"
#include "kernels/ops/linear/adapter_view.h"

namespace vitrine::kernels {

/// One weight: out = x + scale B A, packed. Sums of the adapter are made in float32, over the rank in ascending order
/// and without fused products; without an adapter x stays as it is. Values are rounded to `type` then. INT4:
/// kernels/formats/integer_rounding.h, with scales of `type`. FP8: a scale of max|x| / 448 for each block, 1 for a
/// block of zeros. MXFP4: packMxfp4 of kernels/formats/mxfp4_format.h. Every backend gives the same bits. A group or
/// block with a value that is not finite gets a scale that is no number, so products with it are no numbers either.
struct PackWeight {
    WeightView x;        ///< (out, in) or (experts, out, in): F32, BF16 or F16 as they lie, or packed as `out` may be
    AdapterView adapter; ///< of the weight, contiguous, A and B of one type; or empty
    WeightView out;      ///< INT4 without zeros and order, FP8 with float32 scales, or MXFP4; of the shape of x
    TensorView values;   ///< of the shape of x, or empty: receives what `out` stands for, as Dequantize gives it
    DType type = DType::F32;
    IntegerRule rule = IntegerRule::CompressedTensors; ///< of INT4
};

/// Several weights. A GPU takes those that are packed in one way in few launches.
struct PackWeights {
    static constexpr std::string_view kName = "PackWeight";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Weights;
    std::span<const PackWeight> weights; ///< read until the op returns
    /// (1) I64 or empty: the number of codes that differ from those that the weights had is added to it.
    TensorView changed;
};

void check(const PackWeights& op);
Cost cost(const PackWeights& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const PackWeights& op, const DeviceTraits& traits);
void execute(CpuContext& context, const PackWeights& op);
void execute(CudaContext& context, const PackWeights& op);

} // namespace vitrine::kernels
