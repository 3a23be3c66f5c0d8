// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Packed weights to dense ones, random weights for synthetic models, transposed copies.

#include "kernels/core/op.h"
#include "kernels/core/weight_view.h"

namespace vitrine::kernels {

/// A packed weight as floats. MXFP4: out = table[nibble] * 2^(scale - 127), exact in BF16 unless the exponent leaves
/// its range. NF4: out = table[nibble] * scale in float32, rounded once more when out is narrower.
struct Dequantize {
    static constexpr std::string_view kName =
        "DequantizeMxfp4"; ///< of every format: recorded runs know it by this name
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Weights;
    WeightView weight;
    TensorView out; ///< of the weight's shape
};

/// Random values from Philox with the key (seed, stream): center + normal with the given deviation for float types;
/// for U8 (packed elements) uniform bytes in which the bits of `center` are clear, or, when deviation is 0 (their
/// scales), the constant `center`.
struct FillRandom {
    static constexpr std::string_view kName = "FillRandom";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Weights;
    /// Which elements of a larger tensor are filled: runs of `run` elements, whose beginnings are `stride` apart from
    /// `first` on. They get the values that they have in that tensor. A run of 0: out is the whole tensor.
    struct Part {
        std::int64_t first = 0;
        std::int64_t run = 0;
        std::int64_t stride = 0;
    };
    TensorView out;
    std::uint64_t seed = 0;
    std::uint32_t stream = 0;
    float center = 0;
    float deviation = 1;
    Part part;
};

/// out (..., b, a) = x (..., a, b), both contiguous.
struct TransposeCopy {
    static constexpr std::string_view kName = "TransposeCopy";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Weights;
    TensorView x;
    TensorView out;
};

void check(const Dequantize& op);
Cost cost(const Dequantize& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Dequantize& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Dequantize& op);
void execute(CudaContext& context, const Dequantize& op);

void check(const FillRandom& op);
Cost cost(const FillRandom& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const FillRandom& op, const DeviceTraits& traits);
void execute(CpuContext& context, const FillRandom& op);
void execute(CudaContext& context, const FillRandom& op);

void check(const TransposeCopy& op);
Cost cost(const TransposeCopy& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const TransposeCopy& op, const DeviceTraits& traits);
void execute(CpuContext& context, const TransposeCopy& op);
void execute(CudaContext& context, const TransposeCopy& op);

} // namespace vitrine::kernels
