// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Floats to FP8 with a float32 scale for a block of rowGroup by group weights: a thread block takes one, and reads its
// values twice.

#include "device/abi/pack_weight.h"
#include "device/attention/kv_bytes.cuh"
#include "device/lib/pdl.cuh"
#include "device/linear/pack_codes.cuh"

using namespace vt;

extern "C" __global__ void __launch_bounds__(256)
    pack_weight_fp8(const __grid_constant__ vitrine::kernels::abi::PackWeightParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    using T = StorageOf<VT_TYPE>;
    __shared__ u32 most;
    pdl::wait();
    const int column = static_cast<int>(blockIdx.x) * p.group;
    const int width = min(p.group, p.in - column);
    const int first = static_cast<int>(blockIdx.y) * p.rowGroup;
    const int height = min(p.rowGroup, p.out - first);
    const i64 begin = (static_cast<i64>(blockIdx.z) * p.out + first) * p.in + column;
    const i64 count = static_cast<i64>(width) * height;
    const auto place = [&](i64 i) { return begin + i / width * p.in + i % width; };
    const auto value = [&](i64 at) { return rounded<T>(toFloat(static_cast<const X*>(p.x)[at])); };
    if (threadIdx.x == 0) {
        most = 0;
    }
    __syncthreads();
    u32 largest = 0;
    for (i64 i = threadIdx.x; i < count; i += 256) {
        largest = max(largest, bytes::magnitudeBits(value(place(i))));
    }
    largest = __reduce_max_sync(kAllLanes, largest);
    if (threadIdx.x % 32 == 0) {
        atomicMax(&most, largest);
    }
    __syncthreads();
    const bool finite = most < kInfinityBits;
    const float narrow = __fdiv_rn(__uint_as_float(most), 448.0F);
    const float scale = narrow == 0.0F ? 1.0F : narrow;
    u32 different = 0;
    for (i64 i = threadIdx.x; i < count; i += 256) {
        const i64 at = place(i);
        const u8 byte = finite ? bytes::nearest<e4m3>(__fdiv_rn(value(at), scale)).bits : u8{0};
        u8* const to = static_cast<u8*>(p.data) + at;
        if (p.changed != nullptr) {
            different += *to != byte;
        }
        *to = byte;
    }
    if (threadIdx.x == 0) {
        const i64 row = static_cast<i64>(blockIdx.z) * gridDim.y + blockIdx.y;
        static_cast<float*>(p.scales)[row * gridDim.x + blockIdx.x] = finite ? scale : __uint_as_float(0x7FC00000U);
    }
    if (p.changed != nullptr) {
        addCount(different, p.changed);
    }
}
