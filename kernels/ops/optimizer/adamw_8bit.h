// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// AdamW (adamw.h) whose moments are a byte each (Dettmers and others 2022): codes of a table of 256 values between -1
// and 1, times the largest absolute value of their block. A block is 256 elements; the last one may be short.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kAdamW8BitBlock = 256; ///< elements that share a scale

/// Updates a parameter and its moments in place: moments become floats, take the step, and become the nearest codes
/// again (ties to the lower). Codes and scales of zero bytes are moments of zero. All tensors are contiguous.
struct AdamW8Bit {
    static constexpr std::string_view kName = "AdamW8Bit";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Optimizer;
    TensorView parameter; ///< (n) floats but F64: what the forward pass reads
    TensorView master;    ///< (n) F32: it is updated, and parameter becomes its rounding; empty: parameter is updated
    TensorView gradient;  ///< (n) floats
    TensorView code1;     ///< (n) U8: moment1 as places in the first row of maps
    TensorView absmax1;   ///< (blocks) F32
    TensorView code2;     ///< (n) U8: moment2 as places in the second row of maps
    TensorView absmax2;   ///< (blocks) F32
    TensorView maps;      ///< (2, 256) F32: signedDynamicMap() and unsignedDynamicMap() of formats/dynamic_map.h
    TensorView gradScale; ///< (1) F32: multiplies the gradient; empty: 1
    double learningRate = 0;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weightDecay = 0.01;
    std::int64_t step = 1; ///< from 1
};

/// Blocks of n elements.
constexpr std::int64_t adamW8BitBlocks(std::int64_t n) {
    return (n + kAdamW8BitBlock - 1) / kAdamW8BitBlock;
}

void check(const AdamW8Bit& op);
Cost cost(const AdamW8Bit& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const AdamW8Bit& op, const DeviceTraits& traits);
void execute(CpuContext& context, const AdamW8Bit& op);
/// Throws Unsupported for a gradient of F64.
void execute(CudaContext& context, const AdamW8Bit& op);

} // namespace vitrine::kernels
