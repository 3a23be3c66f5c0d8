// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Floats to a packed weight, in place: what quantization-aware training does to its masters after each update.

#include "kernels/core/op.h"
#include "kernels/core/weight_view.h"
#include "kernels/formats/integer_rounding.h"

namespace vitrine::kernels {

/// out = x, packed. Values are rounded to `type` first. INT4: kernels/formats/integer_rounding.h, with scales of
/// `type`. FP8: a scale of max|x| / 448 for each block, 1 for a block of zeros. MXFP4: packMxfp4 of
/// kernels/formats/mxfp4_format.h. Every backend gives the same bits. A group or block with a value that is not finite
/// gets a scale that is no number, so products with it are no numbers either.
struct PackWeight {
    static constexpr std::string_view kName = "PackWeight";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Weights;
    TensorView x;   ///< (out, in) or (experts, out, in), F32, BF16 or F16, contiguous
    WeightView out; ///< INT4 without zeros and order, FP8 with float32 scales, or MXFP4; of the shape of x
    DType type = DType::F32;
    IntegerRule rule = IntegerRule::CompressedTensors; ///< of INT4
    /// (1) I64 or empty: the number of codes that differ from those that `out` had is added to it.
    TensorView changed;
};

void check(const PackWeight& op);
Cost cost(const PackWeight& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const PackWeight& op, const DeviceTraits& traits);
void execute(CpuContext& context, const PackWeight& op);
void execute(CudaContext& context, const PackWeight& op);

} // namespace vitrine::kernels
