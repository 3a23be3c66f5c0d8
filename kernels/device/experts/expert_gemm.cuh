// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Grouped expert products for every tensor core since sm_80: a block of 8 warps makes 128 weight rows times one tile.
// Four warps share the weight rows, two the tile's rows; weights go from global memory to registers one block ahead.

#include "device/experts/expert_weights.cuh"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;
using namespace vt::grouped;

constexpr int kStages = VT_STAGES;
constexpr int kThreads = 256;
static_assert(kStages >= 2, "the results need the room of two stages");

/// The weights of one fragment, block after block, loaded to registers one load ahead.
class FragmentStream {
public:
    __device__ __forceinline__ explicit FragmentStream(const FragmentPlace& place) : place_(place) {
        place_.load(0, raw_);
    }
    /// kOdd is block % 2.
    template <int kOdd> __device__ __forceinline__ void next(int block, u32 (&a)[4][4]) {
        if (!kOdd || kLoadBlocks == 1) {
            raw_.settle();
        }
        raw_.template expand<kOdd>(a);
        if ((kOdd || kLoadBlocks == 1) && block + 1 < kBlocks) {
            place_.load(block + 1, raw_);
        }
    }

private:
    const FragmentPlace place_;
    RawWeights raw_;
};

/// A tile's rows and the ring that they are copied to.
struct BlockSource {
    const u8* tile;
    int bytes; ///< of a block
    u32 stages;
};

/// One block of the tile's rows into a stage; one group of copies.
__device__ __forceinline__ void copyBlock(const BlockSource& source, int block) {
    const u32 to = source.stages + static_cast<u32>(block % kStages * kBlockBytes);
    if (block < kBlocks) {
        for (int i = static_cast<int>(threadIdx.x) * 16; i < source.bytes; i += kThreads * 16) {
            copyAsync16(to + static_cast<u32>(i), source.tile + static_cast<i64>(block) * kBlockBytes + i);
        }
    }
    copyAsyncCommit();
}

/// Adds one block of both fragments for the warp's 64 rows of the tile.
__device__ __forceinline__ void multiplyBlock(const u32 (&a)[2][4][4], u32 stage, int firstRow, int lane,
                                              float (&sums)[2][8][4]) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            u32 b[4];
            const int row = firstRow + 16 * part + lane % 8 + lane / 16 * 8;
            loadMatrix4(b, stage + swizzled<128>(row, step * 32 + lane / 8 % 2 * 16));
#pragma unroll
            for (int m = 0; m < 2; ++m) {
                mma16816<bf16>(sums[m][2 * part], a[m][step], b[0], b[1]);
                mma16816<bf16>(sums[m][2 * part + 1], a[m][step], b[2], b[3]);
            }
        }
    }
}

/// One block of the contracted axis; kOdd is block % 2. `busy` is whether the warp's rows hold anything.
template <int kOdd>
__device__ __forceinline__ void accumulateBlock(int block, FragmentStream (&weights)[2], const BlockSource& source,
                                                int firstRow, bool busy, int lane, float (&sums)[2][8][4]) {
    u32 fragments[2][4][4];
    weights[0].next<kOdd>(block, fragments[0]);
    weights[1].next<kOdd>(block, fragments[1]);
    copyAsyncWait<kStages - 2>();
    __syncthreads();
    copyBlock(source, block + kStages - 1);
    if (busy) {
        multiplyBlock(fragments, source.stages + static_cast<u32>(block % kStages * kBlockBytes), firstRow, lane, sums);
    }
}

/// Results to shared memory: blocks of 64 features, 128 bytes a row.
__device__ __forceinline__ void stageResults(const abi::ExpertGemmParams& p, int expert, int group, int warp,
                                             int firstRow, int lane, const float (&sums)[2][8][4], u8* results) {
    const int g = lane / 4;
    const WeightRows rows(group, warp, lane);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        const float lowBias = biasOf(p, expert, rows.row(m, 0));
        const float highBias = biasOf(p, expert, rows.row(m, 1));
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int next = 0; next < 2; ++next) {
                const int row = firstRow + 8 * i + 2 * (lane % 4) + next;
                const float low = fmaf(sums[m][i][next], kUndo, lowBias);
                const float high = fmaf(sums[m][i][2 + next], kUndo, highBias);
                if (kGated) {
                    const bool inside = rows.feature(m) < kFeatures;
                    const float value = inside ? activate(p, low, high) : 0;
                    *reinterpret_cast<bf16*>(results + swizzled<128>(row, (4 * m + warp) * 16 + 2 * g)) =
                        fromFloat<bf16>(value);
                } else {
                    u8* at = results + m * kBlockBytes;
                    *reinterpret_cast<bf16*>(at + swizzled<128>(row, warp * 32 + 2 * g)) = fromFloat<bf16>(low);
                    *reinterpret_cast<bf16*>(at + swizzled<128>(row, warp * 32 + 16 + 2 * g)) = fromFloat<bf16>(high);
                }
            }
        }
    }
}

/// From shared memory to a block of the next product's tile, or to the pairs' rows.
__device__ __forceinline__ void copyResults(const abi::ExpertGemmParams& p, int tile, int rows, int group,
                                            const u8* results) {
    if constexpr (kGated) {
        const int padded = (rows + 31) / 32 * 32;
        u8* to = static_cast<u8*>(p.result) + (static_cast<i64>(tile) * blocksOf(kFeatures) + group) * kBlockBytes;
        for (int i = static_cast<int>(threadIdx.x) * 16; i < padded * 128; i += kThreads * 16) {
            *reinterpret_cast<u32x4*>(to + i) = *reinterpret_cast<const u32x4*>(results + i);
        }
    } else {
        for (int i = static_cast<int>(threadIdx.x); i < rows * 16; i += kThreads) {
            const int row = i / 16;
            const int feature = group * 128 + i % 16 * 8;
            if (feature < kFeatures) {
                const i64 pair = p.slots[tile * kTileRows + row];
                *reinterpret_cast<u32x4*>(static_cast<u16*>(p.result) + pair * p.resultStride + feature) =
                    *reinterpret_cast<const u32x4*>(results + i % 16 / 8 * kBlockBytes +
                                                    swizzled<128>(row, i % 8 * 16));
            }
        }
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(kThreads, 1) expert_gemm(const __grid_constant__ abi::ExpertGemmParams p) {
    extern __shared__ __align__(1024) unsigned char shared[];
    pdl::wait();
    pdl::launchDependents();
    const int tile = static_cast<int>(blockIdx.y);
    const int group = static_cast<int>(blockIdx.x);
    if (tile >= *p.tileCount) {
        return;
    }
    const int expert = p.tiles[2 * tile];
    const int rows = p.tiles[2 * tile + 1];
    const int bytes = (rows + 31) / 32 * 32 * kBlock * 2;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int firstRow = static_cast<int>(threadIdx.x) / 128 * 64;
    const u32 stages = sharedAddress(shared);
    const u8* from = static_cast<const u8*>(p.x) + static_cast<i64>(tile) * kBlocks * kBlockBytes;

    const BlockSource source{from, bytes, stages};
    FragmentStream weights[2] = {FragmentStream(FragmentPlace(p, expert, group, 0, warp, lane)),
                                 FragmentStream(FragmentPlace(p, expert, group, 1, warp, lane))};
    for (int block = 0; block < kStages - 1; ++block) {
        copyBlock(source, block);
    }
    float sums[2][8][4] = {};
#pragma unroll 1
    for (int block = 0; block < kBlocks; block += 2) {
        accumulateBlock<0>(block, weights, source, firstRow, firstRow < rows, lane, sums);
        if (kBlocks % 2 == 0 || block + 1 < kBlocks) {
            accumulateBlock<1>(block + 1, weights, source, firstRow, firstRow < rows, lane, sums);
        }
    }
    copyAsyncWait<0>();
    __syncthreads();
    if (firstRow < rows) {
        stageResults(p, expert, group, warp, firstRow, lane, sums, shared);
    }
    __syncthreads();
    copyResults(p, tile, rows, group, shared);
}
