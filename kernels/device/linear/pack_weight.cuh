// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Floats to INT4 or MXFP4. Groups of 8, 16, .. 256 inputs: a thread takes eight values, and neighbouring lanes a group,
// so that a warp reads and writes one stretch of memory. Other groups: a warp takes a group, eight values a lane at a
// time, and reads them twice. Blocks go over the weight in strides, because each adds to the count of changes once.

#include "device/abi/pack_weight.h"
#include "device/lib/pdl.cuh"
#include "device/linear/pack_codes.cuh"

using namespace vt;

#if VT_FORMAT == VT_FORMAT_MXFP4
using Coder = Mxfp4Coder;
#else
using Coder = Int4Coder<StorageOf<VT_TYPE>, VT_SEVEN != 0>;
#endif
using X = StorageOf<VT_X_DTYPE>;
using T = StorageOf<VT_TYPE>;

/// Writes a word and returns how many of its codes are new.
__device__ __forceinline__ u32 put(u32* to, u32 word, bool counts) {
    const u32 different = counts ? differentNibbles(*to, word) : 0;
    *to = word;
    return different;
}

extern "C" __global__ void __launch_bounds__(256)
    pack_weight(const __grid_constant__ vitrine::kernels::abi::PackWeightParams p) {
    constexpr int kLanes = VT_GROUP / 8;
    pdl::wait();
    const bool counts = p.changed != nullptr;
    const i64 pieces = p.groups * kLanes;
    const i64 rounds = (pieces + 255) / 256; // all lanes of a warp go on together
    u32 different = 0;
    for (i64 round = blockIdx.x; round < rounds; round += gridDim.x) {
        const i64 piece = round * 256 + threadIdx.x;
        const bool inside = piece < pieces;
        float values[8] = {};
        if (inside) {
            loadRounded<T>(static_cast<const X*>(p.x) + piece * 8, values);
        }
        u32 largest = largestBits(values);
#pragma unroll
        for (int offset = kLanes / 2; offset > 0; offset /= 2) {
            largest = max(largest, __shfl_xor_sync(kAllLanes, largest, offset));
        }
        const Coder coder(largest);
        if (inside) {
            different += put(static_cast<u32*>(p.data) + piece, coder.word(values), counts);
            if (piece % kLanes == 0) {
                static_cast<Coder::Scale*>(p.scales)[piece / kLanes] = coder.stored();
            }
        }
    }
    if (counts) {
        addCount(different, p.changed);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    pack_weight_wide(const __grid_constant__ vitrine::kernels::abi::PackWeightParams p) {
    pdl::wait();
    const bool counts = p.changed != nullptr;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    u32 different = 0;
    for (i64 group = static_cast<i64>(blockIdx.x) * 8 + threadIdx.x / 32; group < p.groups;
         group += static_cast<i64>(gridDim.x) * 8) {
        const X* const x = static_cast<const X*>(p.x) + group * p.pieces * 8;
        u32 largest = 0;
        float values[8];
        for (int piece = lane; piece < p.pieces; piece += 32) {
            loadRounded<T>(x + piece * 8, values);
            largest = largestBits(values, largest);
        }
        const Coder coder(__reduce_max_sync(kAllLanes, largest));
        for (int piece = lane; piece < p.pieces; piece += 32) {
            loadRounded<T>(x + piece * 8, values);
            different += put(static_cast<u32*>(p.data) + group * p.pieces + piece, coder.word(values), counts);
        }
        if (lane == 0) {
            static_cast<Coder::Scale*>(p.scales)[group] = coder.stored();
        }
    }
    if (counts) {
        addCount(different, p.changed);
    }
}
