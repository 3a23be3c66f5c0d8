// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Few BF16 rows times packed matrices, or times the matrices of experts, near the rate of memory (sm_80 and later).
//
// A block makes 16 * kRowTiles outputs for up to 8 * kTiles rows of x. Its warps share the contracted axis: chunks of
// 128 inputs go round them, so that together they read whole lines of a row. Each warp has a ring of its own in shared
// memory, which asynchronous copies fill kStages chunks ahead. Of a chunk the warp multiplies 32 inputs at a time,
// which have one scale: lane (g, t) has inputs 8 t .. 8 t + 7 of rows g and g + 8 of a row tile, and the same inputs of
// x. A sum does not depend on the order of its inputs, so they go to the tensor cores as they lie.
//
// Elements become pairs of bf16 exactly (packed_half.cuh). Those of INT4 are codes: sum (code - zero) x = sum code x -
// zero sum x, and tensor cores make what zeros take away too. Scales multiply sums, in float32: no weight is
// rounded. At last the warps' sums are added in shared memory, in the order of the warps. abi/packed_rows.h says which
// rows and matrices a launch may bring together, and what gated products store.

#include "device/abi/dtype.h"
#include "device/formats/int4_groups.cuh"
#include "device/formats/packed_half.cuh"
#include "device/lib/async.cuh"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"
#include "device/linear/packed_places.cuh"
#include "device/rowwise/activation.cuh"

namespace {

using namespace vt;
using namespace vt::packed;

using Scale = StorageOf<VT_SCALE_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;

/// Where a piece of a row of a stage lies: pieces are exchanged so that a warp's elements lie in different banks.
__device__ __forceinline__ int stageOffset(int row, int piece) {
    constexpr int kRowsOfBanks = 128 / kRowBytes;
    return row * kRowBytes + (piece ^ row / kRowsOfBanks % kPieces) * kPieceBytes;
}

/// The elements of a chunk into a stage, as one group of copies. Inputs behind the last are zeros.
__device__ __forceinline__ void copyElements(const Place& place, const Chunk& chunk, int lane, u32 stage) {
    constexpr int kCopies = kRowBytes / 16; // of a row
    constexpr int kOfPiece = kPieceBytes / 16;
    constexpr int kRowsAtOnce = 32 / kCopies;
    const int copy = lane % kCopies;
    const int first = chunk.number * kChunk + copy * (kChunk / kCopies);
    const i64 rowBytes = place.p.in * PackedHalf::kBits / 8;
#pragma unroll
    for (int i = 0; i < kOutputs / kRowsAtOnce; ++i) {
        const int row = kRowsAtOnce * i + lane / kCopies;
        const u32 to = stage + static_cast<u32>(stageOffset(row, copy / kOfPiece) + copy % kOfPiece * 16);
        const u8* from = place.matrixOf(row).data + chunk.row(place, row) * rowBytes +
                         (VT_WHOLE || first < place.p.in ? first * PackedHalf::kBits / 8 : 0);
        copyAsync16(to, from, VT_WHOLE || first < place.p.in);
    }
}

/// The scales and zeros of a lane's rows in a chunk.
struct Groups {
    Int4Groups<Scale, kScales, VT_ZEROS != 0> rows[kRowTiles][2];

    float weight = 1; ///< of the pair

    __device__ __forceinline__ void load(const Place& place, const Chosen& chosen, const Chunk& chunk, int lane) {
#pragma unroll
        for (int i = 0; i < 2 * kRowTiles; ++i) {
            const int output = 8 * i + lane / 4;
            const abi::PackedRowsMatrix& matrix = place.matrixOf(8 * i);
            rows[i / 2][i % 2].load<VT_WHOLE != 0>(matrix.scales, matrix.zeros, chunk.scaleRow(place, output),
                                                   place.p.groups, chunk.number * kChunk / VT_GROUP);
        }
        if (kSums) {
            weight = chosen.weights[chunk.pair];
        }
    }
    __device__ __forceinline__ float scaleOf(int m, int half, int index) const {
        const float scale = toFloat(rows[m][half].scales[index]);
        return kSums ? scale * weight : scale;
    }
};

/// A lane's elements of a piece of a row.
template <class Format>
__device__ __forceinline__ typename Format::Eight elementsAt(const unsigned char* stage, int row, int piece, int lane) {
    const unsigned char* from = stage + stageOffset(row, piece) + lane % 4 * Format::kBits;
    return *reinterpret_cast<const typename Format::Eight*>(from);
}

/// Adds 32 inputs.
template <class Format>
__device__ __forceinline__ void addPiece(const unsigned char* stage, int piece, const Groups& groups, int scale,
                                         const u32x4 (&x)[kTiles], int lane, float (&sums)[kRowTiles][kTiles][4]) {
    u32 pairs[kTiles][4];
    float minus[kTiles][4]; // what zeros take away, or would if they were 1
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
        Format::pairsOf(x[n], pairs[n]);
        if constexpr (Format::kOffset) {
            Format::template minusSums<VT_ZEROS ? 1 : 8>(pairs[n], minus[n]); // no zeros in the weight: all are 8
        }
    }
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
        u32 upper[4], lower[4];
        Format::split(elementsAt<Format>(stage, 16 * m + lane / 4, piece, lane), upper);
        Format::split(elementsAt<Format>(stage, 16 * m + 8 + lane / 4, piece, lane), lower);
        const float upperScale = groups.scaleOf(m, 0, scale);
        const float lowerScale = groups.scaleOf(m, 1, scale);
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
            } else if constexpr (Format::kOffset) {
                mmaOnto(part, first, pairs[n][0], pairs[n][1], minus[n]);
            } else {
                mmaFirst<bf16>(part, first, pairs[n][0], pairs[n][1]);
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

/// One of the block's sums, with its bias.
__device__ __forceinline__ float total(const Place& place, const Chosen& chosen, int chosenCount, const float* parts,
                                       int row, int output) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
        sum += parts[(warp * kRows + row) * kOutputs + output];
    }
    sum *= PackedHalf::kUndo;
#if VT_BIAS_DTYPE
    const abi::PackedRowsMatrix& matrix = place.matrixOf(output);
    const auto* bias = static_cast<const StorageOf<VT_BIAS_DTYPE>*>(matrix.bias) + place.rowOf(output);
    if constexpr (kSums) {
        for (int i = 0; i < chosenCount; ++i) {
            sum += chosen.weights[i] * toFloat(bias[chosen.ids[i] * matrix.biasStride]);
        }
    } else {
        sum += toFloat(bias[place.expert * matrix.biasStride]);
    }
#endif
    return sum;
}

__device__ __forceinline__ void finish(const Place& place, const Chosen& chosen, const float* parts) {
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kFeatures; i += kWarps * 32) {
        const int row = i / kFeatures;
        const int feature = place.firstFeature + i % kFeatures;
        if (row >= place.rows || feature >= place.features()) {
            continue;
        }
        float value = total(place, chosen, place.p.chosen, parts, row, i % kFeatures);
        const i64 to = place.resultRow(row);
        if constexpr (VT_GATE != 0) {
            const float up = total(place, chosen, place.p.chosen, parts, row, kFeatures + i % kFeatures);
            value = gatedActivation<VT_ACTIVATION>(value, up, place.p.alpha, place.p.limit);
        }
#if VT_RESIDUAL_DTYPE
        value += toFloat(
            static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(place.p.residual)[to * place.p.residualStride + feature]);
#endif
        static_cast<Result*>(place.matrix().result)[to * place.matrix().resultStride + feature] =
            fromFloat<Result>(value);
    }
}

/// This lane's rows of x.
struct XRows {
    const bf16* rows[kTiles];

    __device__ __forceinline__ XRows(const Place& place, int pair, int lane) {
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
            rows[n] = static_cast<const bf16*>(place.p.x) + place.xRow(8 * n + lane / 4, pair) * place.p.xStride;
        }
    }
    /// Eight inputs of each, of piece number `piece` of the chunk.
    __device__ __forceinline__ void load(const Place& place, int chunk, int piece, int lane, u32x4 (&x)[kTiles]) const {
        const int first = chunk * kChunk + piece * kPiece + lane % 4 * 8;
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
            x[n] =
                VT_WHOLE || first < place.p.in ? *reinterpret_cast<const u32x4*>(rows[n] + first) : u32x4{0, 0, 0, 0};
        }
    }
};

/// Everything that this warp adds. The first stages of its ring are under way.
__device__ __forceinline__ void addChunks(const Place& place, const Chosen& chosen, int warp, int lane,
                                          unsigned char* ring, float (&sums)[kRowTiles][kTiles][4]) {
    const int chunks = ceilDiv(place.p.in, kChunk);
    const int all = kSums ? chunks * place.p.chosen : chunks;
    const u32 stages = sharedAddress(ring);
    Groups groups;
    u32x4 x[2][kTiles]; // of this piece and of the next
    XRows rows(place, 0, lane);
    if (warp < all) {
        const Chunk chunk(place, chosen, warp, chunks);
        if (kSums) {
            rows = XRows(place, chunk.pair, lane);
        }
        groups.load(place, chosen, chunk, lane);
        rows.load(place, chunk.number, 0, lane, x[0]);
    }
    int stage = 0;
#pragma unroll 1
    for (int index = warp; index < all; index += kWarps) {
        copyAsyncWait<kStages - 2>();
        __syncwarp();
        const int ahead = index + (kStages - 1) * kWarps;
        if (ahead < all) {
            const int to = stage == 0 ? kStages - 1 : stage - 1;
            copyElements(place, Chunk(place, chosen, ahead, chunks), lane, stages + static_cast<u32>(to * kStageBytes));
        }
        copyAsyncCommit();
        const int number = kSums ? Chunk(place, chosen, index, chunks).number : index;
        const bool more = index + kWarps < all;
        const Chunk next(place, chosen, more ? index + kWarps : index, chunks);
        const Groups now = groups;
        if (more) {
            groups.load(place, chosen, next, lane);
        }
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece) {
            if (piece + 1 < kPieces) {
                rows.load(place, number, piece + 1, lane, x[(piece + 1) % 2]);
            } else if (more) {
                if (kSums) {
                    rows = XRows(place, next.pair, lane);
                }
                rows.load(place, next.number, 0, lane, x[0]);
            }
            addPiece<PackedHalf>(ring + stage * kStageBytes, piece, now,
                                 VT_GROUP >= kChunk ? 0 : piece * kPiece / VT_GROUP, x[piece % 2], lane, sums);
        }
        stage = stage + 1 == kStages ? 0 : stage + 1;
    }
}

/// The first stages of this warp's ring.
__device__ __forceinline__ void fillRing(const Place& place, const Chosen& chosen, int warp, int lane,
                                         const unsigned char* ring) {
    const int chunks = ceilDiv(place.p.in, kChunk);
    const int all = kSums ? chunks * place.p.chosen : chunks;
#pragma unroll
    for (int stage = 0; stage < kStages - 1; ++stage) {
        const int index = warp + stage * kWarps;
        if (index < all) {
            copyElements(place, Chunk(place, chosen, index, chunks), lane,
                         sharedAddress(ring) + static_cast<u32>(stage * kStageBytes));
        }
        copyAsyncCommit();
    }
}

/// Needs a barrier after it.
__device__ __forceinline__ void loadChosen(const Place& place, Chosen& chosen) {
    for (int i = static_cast<int>(threadIdx.x); i < place.p.chosen; i += kWarps * 32) {
        chosen.ids[i] = place.p.ids[place.firstRow + i];
        chosen.weights[i] = place.p.weights[place.firstRow + i];
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32, VT_BLOCKS)
    packed_rows(const __grid_constant__ abi::PackedRowsParams p) {
    extern __shared__ __align__(128) unsigned char shared[];
    __shared__ Chosen chosen;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    unsigned char* ring = shared + warp * kStages * kStageBytes;
    constexpr bool kLate = VT_ROWS_OF != abi::PackedOfRows; // which experts there are is a result
    if (kLate) {
        pdl::wait();
        pdl::launchDependents();
    }
    const Place place(p);
    if (place.rows <= 0) {
        if (!kLate) {
            pdl::wait();
        }
        return;
    }
    if (kSums) {
        loadChosen(place, chosen);
        __syncthreads();
    }
    fillRing(place, chosen, warp, lane, ring);
    if (!kLate) {
        pdl::wait();
        pdl::launchDependents();
    }
    float sums[kRowTiles][kTiles][4] = {};
    addChunks(place, chosen, warp, lane, ring, sums);
    copyAsyncWait<0>();
    __syncthreads(); // the rings become the parts
    auto* parts = reinterpret_cast<float*>(shared);
    storeSums(sums, lane, parts + warp * kRows * kOutputs);
    __syncthreads();
    finish(place, chosen, parts);
}
