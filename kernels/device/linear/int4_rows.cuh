// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Few BF16 rows times an INT4 matrix, or times the matrices of experts, near the rate of memory (sm_80 and later).
//
// A block makes 16 * kRowTiles outputs for up to 8 * kTiles rows of x. Its warps share the contracted axis: blocks of
// 128 inputs go round them, so that together they read whole lines of a row. The weights go from global memory to
// registers one block ahead, 16 bytes a lane: lane (g, t) has inputs 32 t .. 32 t + 31 of a block for rows g and g + 8 of
// each row tile. A sum does not depend on the order of its inputs, so those 32 inputs are given to the tensor cores
// as they lie: eight products of 16 inputs take four of each lane, and the lane loads the same inputs of x. Weights
// become BF16 in registers, and each product serves all rows of x. At last the warps' sums are added in shared memory,
// in the order of the warps.

#include "device/abi/int4_rows.h"
#include "device/formats/int4_half.cuh"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

constexpr int kTiles = VT_TILES;        ///< of 8 rows of x
constexpr int kRowTiles = VT_ROW_TILES; ///< of 16 outputs
constexpr int kWarps = VT_WARPS;
constexpr int kRows = 8 * kTiles;
constexpr int kOutputs = 16 * kRowTiles;
constexpr int kBlock = 128;     ///< inputs of a warp's step
constexpr int kTileSlots = 128; ///< of ExpertSort
using Group = Int4Group<VT_SCALE_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;

/// Which rows this block multiplies, and by which matrix.
struct Place {
    int expert = 0;
    int firstRow = 0; ///< of x, or of the tile's slots
    int rows = 0;     ///< from there on
    const int* slots = nullptr;
    int firstOutput = 0;

    __device__ __forceinline__ explicit Place(const abi::Int4RowsParams& p) {
        firstOutput = static_cast<int>(blockIdx.x) * kOutputs;
        firstRow = static_cast<int>(blockIdx.z) * kRows;
#if VT_GROUPED
        const int tile = static_cast<int>(blockIdx.y);
        if (tile < *p.tileCount) {
            expert = p.tiles[2 * tile];
            rows = p.tiles[2 * tile + 1] - firstRow;
            slots = p.slots + tile * kTileSlots + firstRow;
        }
#else
        rows = p.rows - firstRow;
#endif
    }
    __device__ __forceinline__ i64 xRow(const abi::Int4RowsParams& p, int row) const {
        const int inside = min(row, rows - 1);
        return VT_GROUPED ? slots[inside] / p.pairsPerRow : firstRow + inside;
    }
    __device__ __forceinline__ i64 resultRow(int row) const { return VT_GROUPED ? slots[row] : firstRow + row; }
};

/// The first of the 32 inputs that a lane has in a block. Behind the last input it is 0: see dropBehind.
__device__ __forceinline__ int firstInput(const abi::Int4RowsParams& p, int block, int lane) {
    const int first = block * kBlock + lane % 4 * 32;
    return first < p.in ? first : 0;
}

/// One block: what a lane has of the weights and of x, as it is stored. Nothing is computed when it is loaded, so that
/// the loads are under way while another block is multiplied.
struct Stage {
    u32x4 codes[kRowTiles][2];
    Group::Stored scales[kRowTiles][2];
    u8 zeros[kRowTiles][2];
    u32x4 x[kTiles][4];

    __device__ __forceinline__ void load(const abi::Int4RowsParams& p, const Place& place, int block, int lane) {
        const int first = firstInput(p, block, lane);
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int output = min(place.firstOutput + 16 * m + 8 * half + lane / 4, p.out - 1);
                const i64 row = static_cast<i64>(place.expert) * p.out + output;
                codes[m][half] = loadOnce(p.data + row * (p.in / 2) + first / 2);
                const i64 index = row * p.groups + first / VT_GROUP;
                scales[m][half] = static_cast<const Group::Stored*>(p.scales)[index];
                zeros[m][half] = VT_ZEROS ? p.zeros[index] : u8{8};
            }
        }
    }

    __device__ __forceinline__ void loadX(const bf16* const (&rows)[kTiles], int first) {
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                x[n][word] = *reinterpret_cast<const u32x4*>(rows[n] + first + 8 * word);
            }
        }
    }
};

/// Inputs behind the last one count nothing.
__device__ __forceinline__ void dropBehind(const abi::Int4RowsParams& p, int block, int lane, Stage& stage) {
    if (block * kBlock + lane % 4 * 32 >= p.in) {
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                stage.x[n][word] = u32x4{0, 0, 0, 0};
            }
        }
    }
}

__device__ __forceinline__ u32 wordOf(const u32x4& words, int i) {
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

/// Eight inputs of a row of x as the pairs (0, 4), (1, 5), (2, 6), (3, 7).
struct Inputs {
    u32 pairs[4];
    __device__ __forceinline__ explicit Inputs(const u32x4& x) {
        pairs[0] = __byte_perm(x.x, x.z, 0x5410);
        pairs[1] = __byte_perm(x.x, x.z, 0x7632);
        pairs[2] = __byte_perm(x.y, x.w, 0x5410);
        pairs[3] = __byte_perm(x.y, x.w, 0x7632);
    }
};

/// Adds a block: four words of eight inputs, each word two products.
__device__ __forceinline__ void addBlock(const Stage& stage, float (&sums)[kRowTiles][kTiles][4]) {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
        const Group low(stage.scales[m][0], stage.zeros[m][0]);
        const Group high(stage.scales[m][1], stage.zeros[m][1]);
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            u32 upper[4], lower[4];
            unpackInt4(wordOf(stage.codes[m][0], word), low, upper);
            unpackInt4(wordOf(stage.codes[m][1], word), high, lower);
#pragma unroll
            for (int n = 0; n < kTiles; ++n) {
                const Inputs inputs(stage.x[n][word]);
                mma16816<bf16>(sums[m][n], {upper[0], lower[0], upper[1], lower[1]}, inputs.pairs[0], inputs.pairs[1]);
                mma16816<bf16>(sums[m][n], {upper[2], lower[2], upper[3], lower[3]}, inputs.pairs[2], inputs.pairs[3]);
            }
        }
    }
}

/// The warp's sums to its part of shared memory, (kRows, kOutputs).
__device__ __forceinline__ void storeSums(const float (&sums)[kRowTiles][kTiles][4], int lane, float* part) {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = 8 * n + lane % 4 * 2 + i % 2;
                part[row * kOutputs + 16 * m + lane / 4 + i / 2 * 8] = sums[m][n][i];
            }
        }
    }
}

__device__ __forceinline__ void finish(const abi::Int4RowsParams& p, const Place& place, const float* parts) {
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kOutputs; i += kWarps * 32) {
        const int row = i / kOutputs;
        const int output = place.firstOutput + i % kOutputs;
        if (row >= place.rows || output >= p.out) {
            continue;
        }
        float sum = 0;
#pragma unroll
        for (int warp = 0; warp < kWarps; ++warp) {
            sum += parts[warp * kRows * kOutputs + i];
        }
#if VT_BIAS_DTYPE
        sum += toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[place.expert * p.biasStride + output]);
#endif
        const i64 to = place.resultRow(row);
#if VT_RESIDUAL_DTYPE
        sum += toFloat(static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(p.residual)[to * p.residualStride + output]);
#endif
        static_cast<Result*>(p.result)[to * p.resultStride + output] = fromFloat<Result>(sum);
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32, 1)
    int4_rows(const __grid_constant__ abi::Int4RowsParams p) {
    extern __shared__ __align__(16) float parts[];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int blocks = ceilDiv(p.in, kBlock);
#if VT_GROUPED
    pdl::wait(); // which experts there are is a result
    pdl::launchDependents();
#endif
    const Place place(p);
    if (place.rows <= 0) {
#if !VT_GROUPED
        pdl::wait();
#endif
        return;
    }
    Stage stages[2];
    if (warp < blocks) {
        stages[0].load(p, place, warp, lane);
    }
#if !VT_GROUPED
    pdl::wait();
    pdl::launchDependents();
#endif
    const bf16* rows[kTiles];
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
        rows[n] = static_cast<const bf16*>(p.x) + place.xRow(p, 8 * n + lane / 4) * p.xStride;
    }
    if (warp < blocks) {
        stages[0].loadX(rows, firstInput(p, warp, lane));
    }
    float sums[kRowTiles][kTiles][4] = {};
#pragma unroll 1
    for (int block = warp; block < blocks; block += 2 * kWarps) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int now = block + i * kWarps;
            const int next = now + kWarps;
            if (next < blocks) {
                stages[1 - i].load(p, place, next, lane);
                stages[1 - i].loadX(rows, firstInput(p, next, lane));
            }
            if (now < blocks) {
                dropBehind(p, now, lane, stages[i]);
                addBlock(stages[i], sums);
            }
        }
    }
    storeSums(sums, lane, parts + warp * kRows * kOutputs);
    __syncthreads();
    finish(p, place, parts);
}
