// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Philox4x32-10 as in base/philox.h: the same key and counter give the same numbers.

#include "device/lib/types.cuh"

namespace vt {

__device__ __forceinline__ u32x4 philox4x32(u32 seed, u32 stream, u64 position, u64 index) {
    u32 c0 = static_cast<u32>(position);
    u32 c1 = static_cast<u32>(position >> 32);
    u32 c2 = static_cast<u32>(index);
    u32 c3 = static_cast<u32>(index >> 32);
    for (int round = 0; round < 10; ++round) {
        const u64 p0 = static_cast<u64>(0xD2511F53U) * c0;
        const u64 p1 = static_cast<u64>(0xCD9E8D57U) * c2;
        c0 = static_cast<u32>(p1 >> 32) ^ c1 ^ seed;
        c2 = static_cast<u32>(p0 >> 32) ^ c3 ^ stream;
        c1 = static_cast<u32>(p1);
        c3 = static_cast<u32>(p0);
        seed += 0x9E3779B9U;
        stream += 0xBB67AE85U;
    }
    return {c0, c1, c2, c3};
}

} // namespace vt
