// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Products of experts over sorted BF16 rows on Hopper: persistent blocks, tiles of 128 or 256 rows times VT_COLUMNS
// outputs. A tile's rows begin anywhere: the copy of its last rows brings some of the next expert's, whose results are
// not stored. A second product, which adapters need, follows the first one through the ring into the same sums.

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

/// The next stage: 64 values of the contracted axis of a product, beyond whose end the copies bring zeros.
__device__ __forceinline__ void fill(Ring& ring, const abi::TensorMap* rows, const abi::TensorMap* weight,
                                     const Tile& tile, int depth) {
    barrier::wait(ring.empty(), ring.phase ^ 1);
    barrier::arriveExpect(ring.full(), kStageBytes);
    for (int i = 0; i < kConsumers * kBlocks; ++i) {
        copyTile2(ring.left() + static_cast<u32>(i * kSubtile), rows, depth, tile.firstRow + 64 * i, ring.full());
    }
    for (int i = 0; i < kSubtiles; ++i) {
        const u32 to = ring.right() + static_cast<u32>(i * kSubtile);
        if (kContracted) {
            copyTile3(to, weight, tile.firstColumn + 64 * i, depth, tile.expert, ring.full());
        } else {
            copyTile3(to, weight, depth, tile.firstColumn + 64 * i, tile.expert, ring.full());
        }
    }
    ring.next();
}

__device__ void produce(const abi::GroupedMatmulParams& p, const ExpertTiles& tiles, Ring ring) {
    const int columnTiles = ceilDiv(p.out, kColumns);
    const int count = tiles.count() * columnTiles;
    for (int index = static_cast<int>(blockIdx.x); index < count; index += static_cast<int>(gridDim.x)) {
        const Tile tile(p, tiles, index, columnTiles);
        for (int depth = 0; depth < p.in; depth += kDepth) {
            fill(ring, &p.rowMap, &p.weightMap, tile, depth);
        }
        for (int depth = 0; depth < p.extra; depth += kDepth) {
            fill(ring, &p.extraRowMap, &p.extraWeightMap, tile, depth);
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

/// The sum of BF16 pairs `old` and two floats, or, without the variable `accumulate`, the two floats as BF16.
__device__ __forceinline__ u32 pairOf(u32 old, float first, float second) {
    return VT_ACCUMULATE ? packBf16(lowBf16(old) + first, highBf16(old) + second) : packBf16(first, second);
}

/// Four values of each lane of a quad as a matrix: its transpose.
__device__ __forceinline__ void transposeInQuads(u32 (&values)[4]) {
    const bool odd = (threadIdx.x & 1) != 0;
    const bool high = (threadIdx.x & 2) != 0;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const u32 other = __shfl_xor_sync(kAllLanes, odd ? values[i] : values[i + 1], 1);
        values[i] = odd ? other : values[i];
        values[i + 1] = odd ? values[i + 1] : other;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const u32 other = __shfl_xor_sync(kAllLanes, high ? values[i] : values[i + 2], 2);
        values[i] = high ? other : values[i];
        values[i + 2] = high ? values[i + 2] : other;
    }
}

/// kCount blocks of 8 columns of a row, of which this lane has two columns each: `values`, scaled and with bias. One
/// block is written as it lies; of four, each lane of a quad writes one, 16 bytes at once. All lanes of the warp.
template <int kCount>
__device__ __forceinline__ void storeBlocks(const abi::GroupedMatmulParams& p, i64 row, bool valid, int firstColumn,
                                            const float (&values)[kCount][2]) {
    static_assert(kCount == 1 || kCount == 4, "one block, or one for each lane of a quad");
    const int place = static_cast<int>(threadIdx.x) % 4;
    const int column = firstColumn + (kCount == 4 ? 8 : 2) * place;
    u16* to = static_cast<u16*>(p.result) + row * p.resultStride + column;
    valid = valid && column < p.out;
    u32 pairs[kCount] = {};
    if constexpr (kCount == 4) {
        if (VT_ACCUMULATE) {
            if (valid) {
                const u32x4 old = *reinterpret_cast<const u32x4*>(to);
                pairs[0] = old.x;
                pairs[1] = old.y;
                pairs[2] = old.z;
                pairs[3] = old.w;
            }
            transposeInQuads(pairs);
        }
    } else if (VT_ACCUMULATE && valid) {
        pairs[0] = *reinterpret_cast<const u32*>(to);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        pairs[i] = pairOf(pairs[i], values[i][0], values[i][1]);
    }
    if constexpr (kCount == 4) {
        transposeInQuads(pairs);
        if (valid) {
            *reinterpret_cast<u32x4*>(to) = {pairs[0], pairs[1], pairs[2], pairs[3]};
        }
    } else if (valid) {
        *reinterpret_cast<u32*>(to) = pairs[0];
    }
}

/// 64 rows of the result.
__device__ __forceinline__ void store(const abi::GroupedMatmulParams& p, const Tile& tile, int firstRow,
                                      const float (&sums)[kColumns / 2]) {
    constexpr int kCount = kColumns % 32 == 0 ? 4 : 1; // blocks of 8 columns at once
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int row = firstRow + 16 * warp + lane / 4;
#pragma unroll
    for (int j = 0; j < kColumns / 8; j += kCount) {
        const int first = tile.firstColumn + 8 * j;
        if (first >= p.out) {
            break;
        }
        float upper[kCount][2];
        float lower[kCount][2];
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const float* c = sums + 4 * (j + i);
            const int column = first + 8 * i + 2 * (lane % 4);
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                const float bias = column < p.out ? biasOf(p, tile.expert, column + side) : 0;
                upper[i][side] = fmaf(c[side], p.scale, bias);
                lower[i][side] = fmaf(c[2 + side], p.scale, bias);
            }
        }
        storeBlocks<kCount>(p, row, row < tile.end, first, upper);
        storeBlocks<kCount>(p, row + 8, row + 8 < tile.end, first, lower);
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
    const int depths = ceilDiv(p.in, kDepth) + ceilDiv(p.extra, kDepth);
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
