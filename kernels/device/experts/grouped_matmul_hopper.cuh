// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Products of experts over sorted BF16 rows on Hopper: persistent blocks, tiles of 128 or 256 rows times VT_COLUMNS
// outputs. A
// tile's rows begin anywhere: the copy of its last rows brings some of the next expert's, whose results are not stored.

#include "device/experts/grouped_tiles_hopper.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;
using namespace vt::grouped_hopper;

constexpr int kContracted = VT_CONTRACTED;

/// A tile of the result.
struct Tile {
    int expert, firstRow, end, firstColumn;

    __device__ __forceinline__ Tile(const abi::GroupedMatmulParams& p, const ExpertTiles& tiles, int index,
                                    int columnTiles) {
        int piece = index / columnTiles;
        firstColumn = (index % columnTiles) * kColumns;
        expert = tiles.find(piece);
        firstRow = p.starts[expert] + piece * kTileRows;
        end = p.starts[expert + 1];
    }
};

__device__ void produce(const abi::GroupedMatmulParams& p, const ExpertTiles& tiles, Ring ring) {
    const int columnTiles = ceilDiv(p.out, kColumns);
    const int count = tiles.count() * columnTiles;
    for (int index = static_cast<int>(blockIdx.x); index < count; index += static_cast<int>(gridDim.x)) {
        const Tile tile(p, tiles, index, columnTiles);
        for (int depth = 0; depth < p.in; depth += kDepth) {
            barrier::wait(ring.empty(), ring.phase ^ 1);
            barrier::arriveExpect(ring.full(), kStageBytes);
            for (int i = 0; i < kConsumers * kBlocks; ++i) {
                copyTile2(ring.left() + static_cast<u32>(i * kSubtile), &p.rowMap, depth, tile.firstRow + 64 * i,
                          ring.full());
            }
            for (int i = 0; i < kSubtiles; ++i) {
                const u32 to = ring.right() + static_cast<u32>(i * kSubtile);
                if (kContracted) {
                    copyTile3(to, &p.weightMap, tile.firstColumn + 64 * i, depth, tile.expert, ring.full());
                } else {
                    copyTile3(to, &p.weightMap, depth, tile.firstColumn + 64 * i, tile.expert, ring.full());
                }
            }
            ring.next();
        }
    }
}

__device__ __forceinline__ float biasOf(const abi::GroupedMatmulParams& p, int expert, int column) {
#if VT_BIAS_DTYPE
    return toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[expert * p.biasStride + column]);
#else
    return 0;
#endif
}

/// Two neighbours of a row.
__device__ __forceinline__ void storePair(const abi::GroupedMatmulParams& p, i64 row, int column, float first,
                                          float second) {
    u32* at = reinterpret_cast<u32*>(static_cast<u16*>(p.result) + row * p.resultStride + column);
    if (VT_ACCUMULATE) {
        const u32 old = *at;
        first += __uint_as_float(old << 16);
        second += __uint_as_float(old & 0xFFFF0000U);
    }
    *at = packBf16(first, second);
}

/// 64 rows of the result.
__device__ __forceinline__ void store(const abi::GroupedMatmulParams& p, const Tile& tile, int firstRow,
                                      const float (&sums)[kColumns / 2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int row = firstRow + 16 * warp + lane / 4;
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
        const int column = tile.firstColumn + 8 * j + 2 * (lane % 4);
        if (column >= p.out) {
            break;
        }
        const float lowBias = biasOf(p, tile.expert, column);
        const float highBias = biasOf(p, tile.expert, column + 1);
        const float* c = sums + 4 * j;
        if (row < tile.end) {
            storePair(p, row, column, fmaf(c[0], p.scale, lowBias), fmaf(c[1], p.scale, highBias));
        }
        if (row + 8 < tile.end) {
            storePair(p, row + 8, column, fmaf(c[2], p.scale, lowBias), fmaf(c[3], p.scale, highBias));
        }
    }
}

/// The sums of the first kRowBlocks blocks of a warpgroup's rows.
template <int kRowBlocks>
__device__ __forceinline__ void accumulate(Ring& ring, int depths, int consumer, bool leads, Sums& sums) {
    for (int depth = 0; depth < depths; ++depth) {
        barrier::wait(ring.full(), ring.phase);
        if constexpr (kRowBlocks > 0) {
            multiplyStage<kRowBlocks, 0, kContracted>(
                sums, ring.left() + static_cast<u32>(consumer * kBlocks * kSubtile), ring.right());
            wgmma::wait<1>();
        }
        if (depth > 0 && leads) {
            barrier::arrive(ring.emptyBefore());
        }
        ring.next();
    }
    if constexpr (kRowBlocks > 0) {
        wgmma::wait<0>();
    }
    if (leads) {
        barrier::arrive(ring.emptyBefore());
    }
}

__device__ void consume(const abi::GroupedMatmulParams& p, const ExpertTiles& tiles, Ring ring, int consumer) {
    const int columnTiles = ceilDiv(p.out, kColumns);
    const int count = __shfl_sync(kAllLanes, tiles.count() * columnTiles, 0); // the same in all lanes, for the compiler
    const int depths = ceilDiv(p.in, kDepth);
    const bool leads = threadIdx.x % 32 == 0;
    for (int index = static_cast<int>(blockIdx.x); index < count; index += static_cast<int>(gridDim.x)) {
        const Tile tile(p, tiles, index, columnTiles);
        const int firstRow = tile.firstRow + 64 * kBlocks * consumer;
        const int blocks = __shfl_sync(kAllLanes, ceilDiv(tile.end - firstRow, 64), 0);
        Sums sums;
        clear(sums);
        if (blocks >= kBlocks) {
            accumulate<kBlocks>(ring, depths, consumer, leads, sums);
        } else if (kBlocks > 1 && blocks == 1) {
            accumulate<1>(ring, depths, consumer, leads, sums);
        } else {
            accumulate<0>(ring, depths, consumer, leads, sums);
        }
#pragma unroll
        for (int block = 0; block < kBlocks; ++block) {
            store(p, tile, firstRow + 64 * block, sums[block]);
        }
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    grouped_matmul_hopper(const __grid_constant__ abi::GroupedMatmulParams p) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ int before[kMostExperts + 1];
    Ring ring{sharedAddress(shared)};
    if (threadIdx.x == 0) {
        ring.begin();
    }
    pdl::wait();
    pdl::launchDependents();
    ExpertTiles tiles;
    tiles.make(p.starts, p.experts, before, [](int rows) { return ceilDiv(rows, kTileRows); });
    const int warpgroup = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (warpgroup == kConsumers) {
        becomeProducer();
        if (threadIdx.x == kConsumers * 128) {
            produce(p, tiles, ring);
        }
    } else {
        becomeConsumer();
        consume(p, tiles, ring, warpgroup);
    }
}
