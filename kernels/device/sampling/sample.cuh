// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the sampling kernels share.

#include "device/abi/sample.h"
#include "device/lib/topk.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

using vitrine::kernels::abi::SampleParams;
using vitrine::kernels::abi::SampleRow;

/// A broken model's NaN and infinities must not break orders and sums.
__device__ __forceinline__ float comparable(float x) {
    x = x > 3.402823466e38F ? 3.402823466e38F : x;
    return x == x ? x : __int_as_float(0xFF800000);
}

/// The exponential of kernels/core/floats.h, bit for bit: weights must be those of the CPU.
__device__ __forceinline__ float exponential(float x) {
    const float clamped = fminf(fmaxf(x, -87.3F), 88.3F);
    const float shifted = __fadd_rn(__fmul_rn(clamped, 1.44269504F), 12582912.0F);
    const float n = __fsub_rn(shifted, 12582912.0F);
    const float r = __fsub_rn(__fsub_rn(clamped, __fmul_rn(n, 0.693359375F)), __fmul_rn(n, -2.12194440e-4F));
    float p = 1.9875691500e-4F;
    p = __fadd_rn(__fmul_rn(p, r), 1.3981999507e-3F);
    p = __fadd_rn(__fmul_rn(p, r), 8.3334519073e-3F);
    p = __fadd_rn(__fmul_rn(p, r), 4.1665795894e-2F);
    p = __fadd_rn(__fmul_rn(p, r), 1.6666665459e-1F);
    p = __fadd_rn(__fmul_rn(p, r), 5.0000001201e-1F);
    const float series = __fadd_rn(__fadd_rn(__fmul_rn(__fmul_rn(p, r), r), r), 1.0F);
    const u32 exponent = (__float_as_uint(shifted) << 23) + 0x3F800000U;
    return x < -87.3F ? 0.0F : __fmul_rn(series, __uint_as_float(exponent));
}

/// e^(value - maximum) of a value that went through comparable(); NaN where it was not finite.
__device__ __forceinline__ float weightBelow(float value, float maximum) {
    const bool finite = value > __int_as_float(0xFF800000) && value < 3.402823466e38F;
    return finite ? __expf(value - maximum) : __int_as_float(0x7FC00000);
}

/// log(sum of e^(x - maximum)) + maximum.
__device__ __forceinline__ float logSum(float maximum, float sum) {
    return maximum > __int_as_float(0xFF800000) ? maximum + logf(sum) : maximum;
}

} // namespace vt
