// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Activations as E4M3, a warp for each 128 inputs of a row.

#include "device/abi/dtype.h"
#include "device/abi/fp8_quantize.h"
#include "device/attention/kv_bytes.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/types.cuh"
#include "device/lib/warp.cuh"

extern "C" __global__ void __launch_bounds__(256)
    fp8_quantize(const __grid_constant__ vitrine::kernels::abi::Fp8QuantizeParams p) {
    using namespace vt;
    constexpr int kLane = vitrine::kernels::abi::kFp8QuantizeGroup / 32; // inputs of a lane
    pdl::wait();
    pdl::launchDependents();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const i64 number = static_cast<i64>(blockIdx.x) * 8 + threadIdx.x / 32;
    const i64 row = number / p.groups;
    if (row >= p.rows) {
        return;
    }
    const int group = static_cast<int>(number - row * p.groups);
    const int first = (group * 32 + lane) * kLane;
    const bool inside = first < p.in;
    u32x2 pairs{0, 0};
    if (inside) {
        pairs = *reinterpret_cast<const u32x2*>(static_cast<const bf16*>(p.x) + row * p.xStride + first);
    }
    const float values[kLane] = {__uint_as_float(pairs.x << 16), __uint_as_float(pairs.x & 0xFFFF0000U),
                                 __uint_as_float(pairs.y << 16), __uint_as_float(pairs.y & 0xFFFF0000U)};
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < kLane; ++i) {
        largest = max(largest, bytes::magnitudeBits(values[i]));
    }
    const bytes::Scale scale = bytes::scaleOf<e4m3>(__reduce_max_sync(kAllLanes, largest));
    u32 word = 0;
#pragma unroll
    for (int i = 0; i < kLane; ++i) {
        word |= static_cast<u32>(bytes::quantized<e4m3>(values[i], scale).bits) << 8 * i;
    }
    if (inside) {
        *reinterpret_cast<u32*>(p.data + row * p.in + first) = word;
    }
    if (lane == 0) {
        p.scales[row * p.groups + group] = scale.scale;
    }
}
