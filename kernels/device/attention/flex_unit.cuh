// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The unit in which terms of a captured tensor's gradient are counted.

#include "device/lib/types.cuh"

namespace vt::flex {

/// 2^bits over the largest term (as the bits of a float), rounded up to a power of two; a float holds it.
__device__ __forceinline__ float unitOf(unsigned largest, int bits) {
    const int exponent = static_cast<int>(largest >> 23) - 127 + 1;
    const int power = bits - exponent;
    return exp2f(static_cast<float>(power < 120 ? power : 120));
}

} // namespace vt::flex
