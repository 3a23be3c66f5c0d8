// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Attention over single rows on tensor cores (mma.sync, sm_80 and later): bf16 or f16, head dims that are multiples of
// 16 up to 256. One row of q at a time. Keys (of scores) and columns of values (of sums) are the 16 rows of products,
// the heads that share a key head their columns: so up to 8 heads leave no part of a product empty. A row's keys are
// cut into splits by its own length alone, a block each, and a warp takes 16 of every 64 keys through a pipeline of its
// own. The last block of a row merges the splits in their order.

#include "device/attention/attention.cuh"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/warp.cuh"

namespace vt {

namespace decode {

using T = StorageOf<VT_Q_DTYPE>;
using Out = StorageOf<VT_OUT_DTYPE>;
inline constexpr int kDim = VT_HEAD_DIM;
inline constexpr int kGroup = VT_GROUP;
inline constexpr int kDimSteps = kDim / 16;          ///< of the product q.k
inline constexpr int kDimTiles = kDim / 16;          ///< of the output
inline constexpr int kHeadSets = kGroup > 8 ? 2 : 1; ///< columns of products, 8 heads each
inline constexpr int kPitch = kDim * 2 + 16;         ///< bytes between rows in shared memory: no bank conflicts
inline constexpr int kPieces = kDim / 8;             ///< 16-byte pieces of a row

/// Address of this lane's row for ldmatrix of 16 keys and 16 columns as an A operand.
__device__ __forceinline__ u32 keyMatrixOffset(int lane) {
    return static_cast<u32>(lane % 16 * kPitch + lane / 16 * 16);
}
/// The same for values, which are to be transposed: their columns are the operand's rows.
__device__ __forceinline__ u32 valueMatrixOffset(int lane) {
    return static_cast<u32>((lane % 8 + lane / 16 * 8) * kPitch + lane / 8 % 2 * 16);
}

/// Two neighbouring elements of a row.
template <class O> __device__ __forceinline__ void storePair(O* to, float low, float high) {
    if constexpr (sizeof(O) == 2) {
        *reinterpret_cast<u32*>(to) = packPair<O>(low, high);
    } else {
        to[0] = low;
        to[1] = high;
    }
}

/// Over the lanes of equal l % 4.
__device__ __forceinline__ float columnMax(float x) {
#pragma unroll
    for (int step = 4; step < 32; step *= 2) {
        x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, step));
    }
    return x;
}
__device__ __forceinline__ float columnSum(float x) {
#pragma unroll
    for (int step = 4; step < 32; step *= 2) {
        x += __shfl_xor_sync(kAllLanes, x, step);
    }
    return x;
}

} // namespace decode

} // namespace vt
