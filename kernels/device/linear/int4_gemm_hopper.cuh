// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// BF16 rows times an INT4 matrix on Hopper, as Y^T = W X^T: weights are the A operand, which may come from registers.
//
// One thread copies tiles of codes into a ring (256 inputs of all the block's outputs), another one tiles of x (64 or
// 128 inputs of all its rows). Warpgroups take codes to registers, make them BF16 there (int4_hopper.cuh) and multiply.
// Many rows: each warpgroup has outputs of its own. Few rows: VT_SPLIT warpgroups share the outputs and take turns at
// the chunks of the contracted axis, because then copies are what lasts, and more of them are under way; where outputs
// are few too, the VT_PARTS blocks of a cluster share that axis. At last sums go through shared memory, which adds them
// up and turns them round.

#include "device/abi/dtype.h"
#include "device/abi/int4_gemm.h"
#include "device/formats/int4_groups.cuh"
#include "device/formats/int4_hopper.cuh"
#include "device/lib/async.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/warp.cuh"
#include "device/lib/wgmma.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

constexpr int kColumns = VT_COLUMNS;    ///< rows of x
constexpr int kRowTiles = VT_ROW_TILES; ///< of 64 outputs that a warpgroup makes
constexpr int kConsumers = 2;
constexpr int kSplit = VT_SPLIT; ///< consumers that share outputs: one, or all
constexpr int kParts = VT_PARTS; ///< blocks of a cluster that share outputs
constexpr int kCodeStages = VT_CODE_STAGES;
constexpr int kXStages = VT_X_STAGES;
constexpr int kOutputs = 64 * kRowTiles * (kConsumers / kSplit);
constexpr int kChunk = 256; ///< inputs of a stage of codes
/// A stage of x is multiplied in two sides, whose products add to different registers: by the two row tiles, or, when
/// there is only one, by its first and its second 64 inputs.
constexpr int kBox = 64;
constexpr int kStep = kRowTiles > 1 ? kBox : 2 * kBox; ///< inputs of a stage of x
constexpr int kSteps = kChunk / kStep;
constexpr int kCodeBytes = kOutputs * kChunk / 2;
constexpr int kXBytes = kColumns * kStep * 2;
constexpr int kXAt = kCodeStages * kCodeBytes;
constexpr int kBarriersAt = kXAt + kXStages * kXBytes;
constexpr int kScales = VT_GROUP >= kChunk ? 1 : kChunk / VT_GROUP; ///< of a row, in a chunk
constexpr int kCopiers = 128;                                       ///< threads, of which two copy
constexpr int kThreads = kConsumers * 128 + kCopiers;
constexpr int kSumStride = 68; ///< floats of a row of sums: lanes that store together use different banks
static_assert(kSplit == 1 || kRowTiles == 1, "shared sums have one row tile");
static_assert(kParts == 1 || kSplit > 1, "blocks share sums as warpgroups do");
static_assert(kConsumers * kColumns * kSumStride * 4 <= kBarriersAt, "sums take the place of the rings");

using Scale = StorageOf<VT_SCALE_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;
using Factor = Int4Factor<VT_ZEROS != 0>;

/// A place in a ring of kStages stages and the parity of its phase.
template <int kStages> struct Turn {
    int stage = 0;
    u32 phase = 0;

    __device__ __forceinline__ void advance(int by) {
        stage += by;
        if (stage >= kStages) {
            stage -= kStages;
            phase ^= 1;
        }
    }
};
using CodeTurn = Turn<kCodeStages>;
using XTurn = Turn<kXStages>;

/// Addresses in shared memory.
struct Layout {
    u32 base;

    __device__ __forceinline__ u32 codes(int stage) const { return base + static_cast<u32>(stage * kCodeBytes); }
    __device__ __forceinline__ u32 x(int stage) const { return base + static_cast<u32>(kXAt + stage * kXBytes); }
    __device__ __forceinline__ u32 codesFull(int stage) const { return barrierAt(stage); }
    __device__ __forceinline__ u32 codesEmpty(int stage) const { return barrierAt(kCodeStages + stage); }
    __device__ __forceinline__ u32 xFull(int stage) const { return barrierAt(2 * kCodeStages + stage); }
    __device__ __forceinline__ u32 xEmpty(int stage) const { return barrierAt(2 * kCodeStages + kXStages + stage); }

    __device__ void initBarriers() const {
        constexpr u32 kReaders = 4 * kConsumers / kSplit; // warps of a block that read a stage
        for (int i = 0; i < kCodeStages; ++i) {
            barrier::init(codesFull(i), 1);
            barrier::init(codesEmpty(i), kReaders);
        }
        for (int i = 0; i < kXStages; ++i) {
            barrier::init(xFull(i), 1);
            barrier::init(xEmpty(i), kReaders);
        }
        barrier::fenceInit();
    }

private:
    __device__ __forceinline__ u32 barrierAt(int index) const {
        return base + static_cast<u32>(kBarriersAt + 8 * index);
    }
};

__device__ __forceinline__ int firstOutput() {
    return static_cast<int>(blockIdx.x) * kOutputs;
}
__device__ __forceinline__ int firstRow() {
    return static_cast<int>(blockIdx.y) * kColumns;
}

/// The chunks of the contracted axis that this block multiplies.
struct Chunks {
    int first = 0;
    int end;

    __device__ __forceinline__ explicit Chunks(const abi::Int4GemmParams& p) : end(ceilDiv(p.in, kChunk)) {
        if (kParts > 1) {
            const int all = end;
            const int part = static_cast<int>(blockIdx.z); // of a cluster (1, 1, kParts)
            first = all * part / kParts;
            end = all * (part + 1) / kParts;
        }
    }
};

__device__ void copyCodes(const abi::Int4GemmParams& p, const Layout& at) {
    CodeTurn turn;
    const Chunks chunks(p);
    for (int chunk = chunks.first; chunk < chunks.end; ++chunk, turn.advance(1)) {
        barrier::wait(at.codesEmpty(turn.stage), turn.phase ^ 1);
        barrier::arriveExpect(at.codesFull(turn.stage), kCodeBytes);
#pragma unroll
        for (int i = 0; i < kOutputs / 64; ++i) {
            const u32 to = at.codes(turn.stage) + static_cast<u32>(i * 64 * kChunk / 2);
            const int row = firstOutput() + 64 * i;
            if (kSplit > 1) {
                copyTile2Once(to, &p.codeMap, chunk * kChunk / 4, row, at.codesFull(turn.stage));
            } else {
                copyTile2(to, &p.codeMap, chunk * kChunk / 4, row, at.codesFull(turn.stage));
            }
        }
    }
}

__device__ void copyX(const abi::Int4GemmParams& p, const Layout& at) {
    XTurn turn;
    const Chunks chunks(p);
    for (int step = chunks.first * kSteps; step < chunks.end * kSteps; ++step, turn.advance(1)) {
        barrier::wait(at.xEmpty(turn.stage), turn.phase ^ 1);
        barrier::arriveExpect(at.xFull(turn.stage), kXBytes);
#pragma unroll
        for (int box = 0; box < kStep / kBox; ++box) {
            copyTile2(at.x(turn.stage) + static_cast<u32>(box * kColumns * kBox * 2), &p.xMap,
                      step * kStep + box * kBox, firstRow(), at.xFull(turn.stage));
        }
    }
}

/// Scales and zeros of this lane's rows in a chunk.
struct Groups {
    Int4Groups<Scale, kScales, VT_ZEROS != 0> rows[kRowTiles][2];

    __device__ __forceinline__ void load(const abi::Int4GemmParams& p, int row, int chunk) {
#pragma unroll
        for (int i = 0; i < 2 * kRowTiles; ++i) {
            rows[i / 2][i % 2].load<VT_WHOLE != 0>(p.scales, p.zeros, min(row + 64 * (i / 2) + 8 * (i % 2), p.out - 1),
                                                   p.groups, chunk * kChunk / VT_GROUP);
        }
    }
    __device__ __forceinline__ Factor factor(int m, int half, int index) const {
        return Factor(toFloat(rows[m][half].scales[index]), rows[m][half].zeros[index]);
    }
};

/// A warp's place among the consumers.
struct Place {
    int lane, warp, consumer; ///< warp of the warpgroup

    /// The first of this lane's rows in the block's tile of codes.
    __device__ __forceinline__ int row() const {
        return (kSplit > 1 ? 0 : consumer * 64 * kRowTiles) + 16 * warp + lane / 4;
    }
};

__device__ __forceinline__ u32x4 loadPiece(u32 codes, int row, int piece) {
    u32x4 out;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
                 : "r"(codes + swizzled<128>(row, piece * 16)));
    return out;
}

/// The fragments of 64 inputs of row tile m; `box` counts them in the chunk.
__device__ __forceinline__ void makeFragments(u32 codes, const Place& place, int box, int m, const Groups& groups,
                                              u32 select, u32 (&a)[4][4]) {
    const int row = place.row() + 64 * m;
#pragma unroll
    for (int half = 0; half < 2; ++half) { // 32 inputs, which have one scale
        const int index = VT_GROUP >= kChunk ? 0 : (box * kBox + half * 32) / VT_GROUP;
        const u32x4 upper = loadPiece(codes, row, box * 2 + half);
        const u32x4 lower = loadPiece(codes, row + 8, box * 2 + half);
        const Factor upperFactor = groups.factor(m, 0, index);
        const Factor lowerFactor = groups.factor(m, 1, index);
        a[2 * half][0] = upperFactor.weights(upper.x, select);
        a[2 * half][1] = lowerFactor.weights(lower.x, select);
        a[2 * half][2] = upperFactor.weights(upper.y, select);
        a[2 * half][3] = lowerFactor.weights(lower.y, select);
        a[2 * half + 1][0] = upperFactor.weights(upper.z, select);
        a[2 * half + 1][1] = lowerFactor.weights(lower.z, select);
        a[2 * half + 1][2] = upperFactor.weights(upper.w, select);
        a[2 * half + 1][3] = lowerFactor.weights(lower.w, select);
    }
    // Keeps the compiler from finishing the fragments between the products.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        asm volatile("" : "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3])::"memory");
    }
}

/// Multiplies this warpgroup's chunks. A row tile alone has two sums, which belong together.
__device__ __forceinline__ void multiply(const abi::Int4GemmParams& p, const Layout& at, const Place& place,
                                         float (&sums)[2][kColumns / 2]) {
    const Chunks chunks(p);
    const int shift = kSplit > 1 ? place.consumer : 0;
    const u32 select = int4ByteOfLane(place.lane);
    const int row = firstOutput() + place.row();
    CodeTurn codeTurn;
    XTurn xTurn;
    codeTurn.advance(shift);
    xTurn.advance(shift * kSteps);
    int before = -1; // the stage of x whose products may still be under way
    Groups next;
    next.load(p, row, min(chunks.first + shift, chunks.end - 1));
    u32 fragments[2][4][4];
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) { // ptxas must not clear sums between the products
        asm volatile("" : "+f"(sums[0][i]), "+f"(sums[1][i])::"memory");
    }
#pragma unroll 1
    for (int chunk = chunks.first + shift; chunk < chunks.end; chunk += kSplit) {
        const Groups groups = next;
        barrier::wait(at.codesFull(codeTurn.stage), codeTurn.phase);
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            if (step == (kSplit > 1 ? 0 : kSteps - 1)) { // as late as may be: many rows leave few registers
                next.load(p, row, min(chunk + kSplit, chunks.end - 1));
            }
            barrier::wait(at.xFull(xTurn.stage), xTurn.phase);
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                const int box = kRowTiles > 1 ? step : 2 * step + side;
                const u64 x =
                    wgmma::descriptor128(at.x(xTurn.stage) + (kRowTiles > 1 ? 0 : side * kColumns * kBox * 2));
                wgmma::wait<1>(); // the products that read these registers are done
                if (side == 1 && before >= 0 && place.lane == 0) {
                    barrier::arrive(at.xEmpty(before));
                }
                makeFragments(at.codes(codeTurn.stage), place, box, kRowTiles > 1 ? side : 0, groups, select,
                              fragments[side]);
                wgmma::fence();
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    wgmma::Product<bf16, kColumns>::run(sums[side], fragments[side][i], x + 2 * static_cast<u64>(i), 1);
                }
                wgmma::commit();
            }
            before = xTurn.stage;
            xTurn.advance(1);
        }
        __syncwarp(); // all lanes have their codes
        if (place.lane == 0) {
            barrier::arrive(at.codesEmpty(codeTurn.stage));
        }
        codeTurn.advance(kSplit);
        xTurn.advance((kSplit - 1) * kSteps);
    }
    wgmma::wait<0>();
}

/// A row tile's sums to shared memory, (kColumns, 64): those of row tile m, or both of one.
__device__ __forceinline__ void storeSums(const float (&sums)[2][kColumns / 2], int m, const Place& place, float* to) {
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = 8 * j + place.lane % 4 * 2 + i % 2;
            to[row * kSumStride + 16 * place.warp + place.lane / 4 + i / 2 * 8] =
                kRowTiles > 1 ? sums[m][4 * j + i] : sums[0][4 * j + i] + sums[1][4 * j + i];
        }
    }
}

/// Eight sums, of `kShares` consumers in each of the blocks that share them.
template <int kShares> __device__ __forceinline__ void addShares(const float* from, float (&values)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        values[i] = 0;
    }
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int i = 0; i < 2 * kShares; ++i) {
            const float* at = from + i / 2 * kColumns * kSumStride + i % 2 * 4;
            float some[4];
            if constexpr (kParts > 1) {
                loadOfBlock(some, sharedAddress(at), static_cast<u32>(part));
            } else {
                *reinterpret_cast<u32x4*>(some) = *reinterpret_cast<const u32x4*>(at);
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                values[i % 2 * 4 + j] += some[j];
            }
        }
    }
}

__device__ __forceinline__ void finish(const abi::Int4GemmParams& p, float (&values)[8], int row, int output) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        values[i] *= kInt4WeightUndo;
#if VT_BIAS_DTYPE
        values[i] += toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[output + i]);
#endif
#if VT_RESIDUAL_DTYPE
        values[i] +=
            toFloat(static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(p.residual)[row * p.residualStride + output + i]);
#endif
    }
    Result* to = static_cast<Result*>(p.result) + row * p.resultStride + output;
    if constexpr (sizeof(Result) == 2) {
        *reinterpret_cast<u32x4*>(to) = {packBf16(values[0], values[1]), packBf16(values[2], values[3]),
                                         packBf16(values[4], values[5]), packBf16(values[6], values[7])};
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            to[i] = fromFloat<Result>(values[i]);
        }
    }
}

/// The 64 outputs from `output` on of all rows; `thread` of `threads` that share them.
template <int kShares>
__device__ __forceinline__ void storeResult(const abi::Int4GemmParams& p, const float* tile, int output, int thread,
                                            int threads) {
    for (int i = thread; i < kColumns * 8; i += threads) {
        const int row = i / 8;
        const int column = i % 8 * 8;
        if (firstRow() + row < p.rows && output + column < p.out) {
            float values[8];
            addShares<kShares>(tile + row * kSumStride + column, values);
            finish(p, values, firstRow() + row, output + column);
        }
    }
}

__device__ void consume(const abi::Int4GemmParams& p, const Layout& at, unsigned char* shared) {
    const int thread = static_cast<int>(threadIdx.x);
    const Place place{thread % 32, thread / 32 % 4, __shfl_sync(kAllLanes, thread / 128, 0)};
    float sums[2][kColumns / 2] = {};
    multiply(p, at, place, sums);
    namedBarrier(1, kConsumers * 128); // the rings become the sums
    auto* tiles = reinterpret_cast<float*>(shared);
    float* tile = tiles + place.consumer * kColumns * kSumStride;
    if constexpr (kSplit > 1) {
        storeSums(sums, 0, place, tile);
        if (kParts > 1) {
            clusterBarrier();
            storeResult<kSplit>(p, tiles, firstOutput(), static_cast<int>(blockIdx.z) * kConsumers * 128 + thread,
                                kParts * kConsumers * 128);
            clusterBarrier(); // no block ends while another one reads its sums
        } else {
            namedBarrier(1, kConsumers * 128);
            storeResult<kSplit>(p, tiles, firstOutput(), thread, kConsumers * 128);
        }
    } else {
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
            storeSums(sums, m, place, tile);
            namedBarrier(2 + place.consumer, 128);
            storeResult<1>(p, tile, firstOutput() + (place.consumer * kRowTiles + m) * 64, thread % 128, 128);
            namedBarrier(2 + place.consumer, 128);
        }
    }
}

} // namespace

extern "C" __global__ void __cluster_dims__(1, 1, VT_PARTS) __launch_bounds__(kThreads, 1)
    int4_gemm_hopper(const __grid_constant__ abi::Int4GemmParams p) {
    extern __shared__ __align__(1024) unsigned char shared[];
    const Layout at{sharedAddress(shared)};
    if (threadIdx.x == 0) {
        at.initBarriers();
    }
    __syncthreads();
    const int warpgroup = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (warpgroup == kConsumers) {
        wgmma::giveRegisters<24>();
        if (threadIdx.x == kConsumers * 128) {
            copyCodes(p, at); // weights are no result of an earlier kernel
        }
        pdl::wait();
        pdl::launchDependents();
        if (threadIdx.x == kConsumers * 128 + 32) {
            copyX(p, at);
        }
        if (kParts > 1) { // the copiers count in the barriers of a cluster
            __syncwarp();
            clusterBarrier();
            clusterBarrier();
        }
    } else {
        wgmma::takeRegisters<240>();
        pdl::wait(); // a residual is one
        pdl::launchDependents();
        consume(p, at, shared);
    }
}
