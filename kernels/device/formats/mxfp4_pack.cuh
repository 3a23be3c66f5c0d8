// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Floats to MXFP4, with the rule of kernels/formats/mxfp4_format.h.

#include "device/lib/types.cuh"

namespace vt {

/// The scale of a group whose largest magnitude has these bits. 255 when it is not finite.
__device__ __forceinline__ u32 mxfp4ScaleFor(u32 largest) {
    const u32 exponent = max(largest >> 23, 2U) - 2U;
    return largest >= 0x7F800000U ? 255U : largest == 0 ? 127U : exponent;
}

/// The nearest E2M1 element: ties go to the even mantissa, values beyond 6 become 6.
__device__ __forceinline__ u32 nearestMxfp4(float value) {
    const float magnitude = fabsf(value);
    const int code = (magnitude > 0.25F) + (magnitude >= 0.75F) + (magnitude > 1.25F) + (magnitude >= 1.75F) +
                     (magnitude > 2.5F) + (magnitude >= 3.5F) + (magnitude > 5.0F);
    return static_cast<u32>(code) | (__float_as_uint(value) >> 28 & 8U);
}

/// Packs a group and returns its scale. One that is not finite becomes zeros.
__device__ __forceinline__ u8 packMxfp4(const float (&values)[32], u32x4& out) {
    u32 largest = 0; // magnitudes are in the order of their bits
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        largest = max(largest, __float_as_uint(values[i]) & 0x7FFFFFFFU);
    }
    const u32 scale = mxfp4ScaleFor(largest);
    const bool finite = scale != 255U;
    const float factor = __uint_as_float((finite ? 254U - scale : 127U) << 23); // 1 / 2^(scale - 127)
    u32 words[4] = {};
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        words[i / 8] |= nearestMxfp4(values[i] * factor) << (4 * (i % 8));
    }
    out = finite ? u32x4{words[0], words[1], words[2], words[3]} : u32x4{0, 0, 0, 0};
    return static_cast<u8>(scale);
}

} // namespace vt
