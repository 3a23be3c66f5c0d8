// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Few BF16 rows times an INT4 matrix, or times the matrices of experts, near the rate of memory (sm_80 and later).
//
// A block makes 16 * kRowTiles outputs for up to 8 * kTiles rows of x. Its warps share the contracted axis: chunks of
// 128 inputs go round them, so that together they read whole lines of a row. Each warp has a ring of its own in shared
// memory, which asynchronous copies fill kStages chunks ahead. Of a chunk the warp multiplies 32 inputs at a time,
// which have one scale: lane (g, t) has inputs 8 t .. 8 t + 7 of rows g and g + 8 of a row tile, one word each, and the
// same inputs of x. A sum does not depend on the order of its inputs, so they go to the tensor cores as they lie.
//
// Codes are multiplied as they are (int4_half.cuh): sum (code - zero) x = sum code x - zero sum x. Tensor cores make
// what zeros take away too, with a matrix whose rows are all the same. Scales multiply sums, in float32: no weight is
// rounded. At last the warps' sums are added in shared memory, in the order of the warps.

#include "device/abi/dtype.h"
#include "device/abi/int4_rows.h"
#include "device/formats/int4_groups.cuh"
#include "device/formats/int4_half.cuh"
#include "device/lib/async.cuh"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

constexpr int kTiles = VT_TILES;        ///< of 8 rows of x
constexpr int kRowTiles = VT_ROW_TILES; ///< of 16 outputs
constexpr int kWarps = VT_WARPS;
constexpr int kStages = VT_STAGES;
constexpr int kRows = 8 * kTiles;
constexpr int kOutputs = 16 * kRowTiles;
constexpr int kChunk = 128; ///< inputs of a warp's step
constexpr int kPiece = 32;  ///< inputs that are multiplied at a time
constexpr int kPieces = kChunk / kPiece;
constexpr int kScales = VT_GROUP >= kChunk ? 1 : kChunk / VT_GROUP; ///< of a row, in a chunk
constexpr int kStageBytes = kOutputs * kChunk / 2;
constexpr int kTileSlots = 128; ///< of ExpertSort
static_assert(VT_GROUP % kPiece == 0, "a piece has one scale");

using Scale = StorageOf<VT_SCALE_DTYPE>;
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
    /// The row of the weight, over all experts; rows after the last read that one.
    __device__ __forceinline__ i64 weightRow(const abi::Int4RowsParams& p, int output) const {
        return static_cast<i64>(expert) * p.out + min(firstOutput + output, p.out - 1);
    }
};

/// Where 16 bytes of a row of a stage lie: pieces are exchanged so that a warp's words lie in different banks.
__device__ __forceinline__ int stageOffset(int row, int piece) {
    return row * (kChunk / 2) + (piece ^ row / 2 % kPieces) * 16;
}

/// The codes of a chunk into a stage, as one group of copies. Inputs behind the last are zeros.
__device__ __forceinline__ void copyCodes(const abi::Int4RowsParams& p, const Place& place, int chunk, int lane,
                                          u32 stage) {
    const int piece = lane % kPieces;
    const int first = chunk * kChunk + piece * kPiece;
#pragma unroll
    for (int i = 0; i < kOutputs / 8; ++i) {
        const int row = 8 * i + lane / kPieces;
        const u32 to = stage + static_cast<u32>(stageOffset(row, piece));
        const u8* from = p.data + place.weightRow(p, row) * (p.in / 2) + (VT_WHOLE || first < p.in ? first / 2 : 0);
        copyAsync16(to, from, VT_WHOLE || first < p.in);
    }
}

/// The scales and zeros of a lane's rows in a chunk.
struct Groups {
    Int4Groups<Scale, kScales, VT_ZEROS != 0> rows[kRowTiles][2];

    __device__ __forceinline__ void load(const abi::Int4RowsParams& p, const Place& place, int chunk, int lane) {
#pragma unroll
        for (int i = 0; i < 2 * kRowTiles; ++i) {
            rows[i / 2][i % 2].load<VT_WHOLE != 0>(p.scales, p.zeros, place.weightRow(p, 8 * i + lane / 4), p.groups,
                                                   chunk * kChunk / VT_GROUP);
        }
    }
};

/// Eight inputs of rows of x as pairs (0, 4), (1, 5), (2, 6), (3, 7), scaled for splitInt4.
__device__ __forceinline__ void pairsOf(const u32x4& x, u32 (&pairs)[4]) {
    pairs[0] = scaleBf16x2(__byte_perm(x.x, x.z, 0x5410), kInt4LowFactor);
    pairs[1] = scaleBf16x2(__byte_perm(x.x, x.z, 0x7632), kInt4HighFactor);
    pairs[2] = scaleBf16x2(__byte_perm(x.y, x.w, 0x5410), kInt4LowFactor);
    pairs[3] = scaleBf16x2(__byte_perm(x.y, x.w, 0x7632), kInt4HighFactor);
}

__device__ __forceinline__ u32 wordAt(const unsigned char* stage, int row, int piece, int lane) {
    return *reinterpret_cast<const u32*>(stage + stageOffset(row, piece) + lane % 4 * 4);
}

/// Adds 32 inputs.
__device__ __forceinline__ void addPiece(const unsigned char* stage, int piece, const Groups& groups, int scale,
                                         const u32x4 (&x)[kTiles], int lane, float (&sums)[kRowTiles][kTiles][4]) {
    u32 pairs[kTiles][4];
    constexpr u32 kZero = VT_ZEROS ? 1 : 8; // without zeros in the weight, all are 8
    constexpr u32 kMinus[4] = {int4LowMinus(kZero), int4LowMinus(kZero), int4HighMinus(kZero), int4HighMinus(kZero)};
    float minus[kTiles][4]; // zero times sum of x, negative: (row 2 t, row 2 t + 1), twice
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
        pairsOf(x[n], pairs[n]);
        mmaFirst<bf16>(minus[n], kMinus, pairs[n][0], pairs[n][1]);
        mma16816<bf16>(minus[n], kMinus, pairs[n][2], pairs[n][3]);
    }
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
        u32 upper[4], lower[4];
        splitInt4(wordAt(stage, 16 * m + lane / 4, piece, lane), upper);
        splitInt4(wordAt(stage, 16 * m + 8 + lane / 4, piece, lane), lower);
        const float upperScale = toFloat(groups.rows[m][0].scales[scale]);
        const float lowerScale = toFloat(groups.rows[m][1].scales[scale]);
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
            float part[4];
            const u32 first[4] = {upper[0], lower[0], upper[1], lower[1]};
            if constexpr (VT_ZEROS) {
                const auto upperZero = static_cast<float>(groups.rows[m][0].zeros[scale]);
                const auto lowerZero = static_cast<float>(groups.rows[m][1].zeros[scale]);
                const float begin[4] = {upperZero * minus[n][0], upperZero * minus[n][1], lowerZero * minus[n][2],
                                        lowerZero * minus[n][3]};
                mmaOnto(part, first, pairs[n][0], pairs[n][1], begin);
            } else {
                mmaOnto(part, first, pairs[n][0], pairs[n][1], minus[n]);
            }
            mma16816<bf16>(part, {upper[2], lower[2], upper[3], lower[3]}, pairs[n][2], pairs[n][3]);
            sums[m][n][0] = fmaf(upperScale, part[0], sums[m][n][0]);
            sums[m][n][1] = fmaf(upperScale, part[1], sums[m][n][1]);
            sums[m][n][2] = fmaf(lowerScale, part[2], sums[m][n][2]);
            sums[m][n][3] = fmaf(lowerScale, part[3], sums[m][n][3]);
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
        sum *= kInt4Undo;
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

/// Eight inputs of this lane's rows of x, of piece number `piece` of the chunk.
__device__ __forceinline__ void loadX(const abi::Int4RowsParams& p, const bf16* const (&rows)[kTiles], int chunk,
                                      int piece, int lane, u32x4 (&x)[kTiles]) {
    const int first = chunk * kChunk + piece * kPiece + lane % 4 * 8;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
        x[n] = VT_WHOLE || first < p.in ? *reinterpret_cast<const u32x4*>(rows[n] + first) : u32x4{0, 0, 0, 0};
    }
}

/// Everything that this warp adds.
__device__ __forceinline__ void addChunks(const abi::Int4RowsParams& p, const Place& place, int warp, int lane,
                                          unsigned char* ring, const bf16* const (&rows)[kTiles],
                                          float (&sums)[kRowTiles][kTiles][4]) {
    const int chunks = ceilDiv(p.in, kChunk);
    const u32 stages = sharedAddress(ring);
    Groups groups;
    u32x4 x[2][kTiles]; // of this piece and of the next
    if (warp < chunks) {
        groups.load(p, place, warp, lane);
        loadX(p, rows, warp, 0, lane, x[0]);
    }
    int stage = 0;
#pragma unroll 1
    for (int chunk = warp; chunk < chunks; chunk += kWarps) {
        copyAsyncWait<kStages - 2>();
        __syncwarp();
        const int ahead = chunk + (kStages - 1) * kWarps;
        if (ahead < chunks) {
            const int to = stage == 0 ? kStages - 1 : stage - 1;
            copyCodes(p, place, ahead, lane, stages + static_cast<u32>(to * kStageBytes));
        }
        copyAsyncCommit();
        const int next = chunk + kWarps;
        const Groups now = groups;
        if (next < chunks) {
            groups.load(p, place, next, lane);
        }
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece) {
            if (piece + 1 < kPieces) {
                loadX(p, rows, chunk, piece + 1, lane, x[(piece + 1) % 2]);
            } else if (next < chunks) {
                loadX(p, rows, next, 0, lane, x[0]);
            }
            addPiece(ring + stage * kStageBytes, piece, now, VT_GROUP >= kChunk ? 0 : piece * kPiece / VT_GROUP,
                     x[piece % 2], lane, sums);
        }
        stage = stage + 1 == kStages ? 0 : stage + 1;
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32, VT_BLOCKS)
    int4_rows(const __grid_constant__ abi::Int4RowsParams p) {
    extern __shared__ __align__(128) unsigned char shared[];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    unsigned char* ring = shared + warp * kStages * kStageBytes;
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
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
        const int chunk = warp + stage * kWarps;
        if (chunk * kChunk < p.in) {
            copyCodes(p, place, chunk, lane, sharedAddress(ring) + static_cast<u32>(stage * kStageBytes));
        }
        copyAsyncCommit();
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
    float sums[kRowTiles][kTiles][4] = {};
    addChunks(p, place, warp, lane, ring, rows, sums);
    copyAsyncWait<0>();
    __syncthreads(); // the rings become the parts
    auto* parts = reinterpret_cast<float*>(shared);
    storeSums(sums, lane, parts + warp * kRows * kOutputs);
    __syncthreads();
    finish(p, place, parts);
}
