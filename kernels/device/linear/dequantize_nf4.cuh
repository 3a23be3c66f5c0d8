// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// NF4 to a dense matrix: a thread loads 16 bytes, half a group. Four threads then exchange words, so that each store of
// theirs goes to memory that follows on.

#include "device/abi/dequantize.h"
#include "device/formats/nf4.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

using namespace vt;

namespace {

/// Words of four neighbouring lanes: word i of lane j becomes word j of lane i.
__device__ __forceinline__ void transposeWords(u32 (&words)[4]) {
    const u32 lane = threadIdx.x;
#pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {
        const bool upper = (lane & static_cast<u32>(bit)) != 0;
#pragma unroll
        for (int low = 0; low < 4; ++low) {
            if ((low & bit) == 0) {
                const int high = low | bit;
                const u32 got = __shfl_xor_sync(0xFFFFFFFFU, upper ? words[low] : words[high], bit);
                words[low] = upper ? got : words[low];
                words[high] = upper ? words[high] : got;
            }
        }
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(256)
    dequantize_nf4(const __grid_constant__ vitrine::kernels::abi::DequantizeParams p) {
    __shared__ float table[16]; // sixteen banks: lanes never wait for each other
    if (threadIdx.x < 16) {
        table[threadIdx.x] = kNf4Values[threadIdx.x];
    }
    pdl::wait();
    __syncthreads();
    const i64 half = gridThread();
    const i64 halves = p.rows * p.weight.groups * 2;
    u32 words[4] = {};
    if (half < halves) {
        const u32x4 loaded = loadOnce(reinterpret_cast<const u32x4*>(p.weight.data) + half);
        words[0] = loaded.x;
        words[1] = loaded.y;
        words[2] = loaded.z;
        words[3] = loaded.w;
    }
    transposeWords(words);
    const i64 first = half / 4 * 4; // of the four lanes
    const int lane = static_cast<int>(threadIdx.x % 4);
    auto* out = static_cast<StorageOf<VT_OUT_DTYPE>*>(p.out);
    float scale = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (first + i >= halves) {
            return;
        }
        if (i % 2 == 0) {
            scale = nf4Scale(p.weight, (first + i) / 2);
        }
        float values[8];
#pragma unroll
        for (int byte = 0; byte < 4; ++byte) {
            const u32 pair = words[i] >> (8 * byte);
            values[2 * byte] = table[pair >> 4 & 15U] * scale;
            values[2 * byte + 1] = table[pair & 15U] * scale;
        }
        storePiece(values, out + (first + i) * 32 + lane * 8);
    }
}
