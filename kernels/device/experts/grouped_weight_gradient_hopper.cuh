// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Gradients of expert stacks on Hopper: 128 x VT_COLUMNS elements of an expert's matrix a piece of work, summed over
// the expert's rows. The last copy of an expert brings rows of the next one, which are cleared in both
// operands before they are multiplied: an infinity times zero is no number.

#include "device/experts/grouped_tiles_hopper.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;
using namespace vt::grouped_hopper;

static_assert(kBlocks == 1, "a consumer has one subtile of the left operand");

struct Piece {
    int expert, firstRow, rows, m, n;

    __device__ __forceinline__ Piece(const abi::GroupedWeightGradientParams& p, int index) {
        const int columnTiles = ceilDiv(p.n, kColumns);
        const int pieces = ceilDiv(p.m, kTileRows) * columnTiles;
        expert = index / pieces;
        const int inside = index % pieces;
        m = inside / columnTiles * kTileRows;
        n = inside % columnTiles * kColumns;
        firstRow = p.starts[expert];
        rows = p.starts[expert + 1] - firstRow;
    }
    static __device__ __forceinline__ int count(const abi::GroupedWeightGradientParams& p) {
        return p.experts * ceilDiv(p.m, kTileRows) * ceilDiv(p.n, kColumns);
    }
};

__device__ void produce(const abi::GroupedWeightGradientParams& p, Ring ring) {
    const int count = Piece::count(p);
    for (int index = static_cast<int>(blockIdx.x); index < count; index += static_cast<int>(gridDim.x)) {
        const Piece piece(p, index);
        for (int row = 0; row < piece.rows; row += kDepth) {
            barrier::wait(ring.empty(), ring.phase ^ 1);
            barrier::arriveExpect(ring.full(), kStageBytes);
            for (int i = 0; i < 2; ++i) {
                copyTile2(ring.left() + static_cast<u32>(i * kSubtile), &p.aMap, piece.m + 64 * i, piece.firstRow + row,
                          ring.full());
            }
            for (int i = 0; i < kSubtiles; ++i) {
                copyTile2(ring.right() + static_cast<u32>(i * kSubtile), &p.bMap, piece.n + 64 * i,
                          piece.firstRow + row, ring.full());
            }
            ring.next();
        }
    }
}

/// Zeros in the rows of a subtile from `valid` on, by a warpgroup.
__device__ __forceinline__ void clearRows(u32 subtile, int valid) {
    for (int at = valid * 128 + static_cast<int>(threadIdx.x) % 128 * 16; at < kSubtile; at += 128 * 16) {
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(subtile + static_cast<u32>(at)), "r"(0)
                     : "memory");
    }
}

/// The same in this warpgroup's subtile of the left operand and in the right operand. Both warpgroups write the right
/// one's zeros, so that neither waits for the other.
__device__ __forceinline__ void clearRows(const Ring& ring, int consumer, int valid) {
    clearRows(ring.left() + static_cast<u32>(consumer * kSubtile), valid);
    for (int i = 0; i < kSubtiles; ++i) {
        clearRows(ring.right() + static_cast<u32>(i * kSubtile), valid);
    }
    fenceAsyncProxy();
    namedBarrier(1 + consumer, 128);
}

__device__ __forceinline__ void storeElement(const abi::GroupedWeightGradientParams& p, int expert, int m, int n,
                                             float value) {
    if (m >= p.m || n >= p.n) {
        return;
    }
    const i64 inside = VT_SWAPPED ? static_cast<i64>(n) * p.m + m : static_cast<i64>(m) * p.n + n;
    float& at = static_cast<float*>(p.result)[static_cast<i64>(expert) * p.m * p.n + inside];
    at = VT_ACCUMULATE ? at + value : value;
}

__device__ __forceinline__ void store(const abi::GroupedWeightGradientParams& p, const Piece& piece, int consumer,
                                      const float (&sums)[kColumns / 2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int m = piece.m + 64 * consumer + 16 * warp + lane / 4;
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
        const int n = piece.n + 8 * j + 2 * (lane % 4);
        const float* c = sums + 4 * j;
        storeElement(p, piece.expert, m, n, c[0]);
        storeElement(p, piece.expert, m, n + 1, c[1]);
        storeElement(p, piece.expert, m + 8, n, c[2]);
        storeElement(p, piece.expert, m + 8, n + 1, c[3]);
    }
}

__device__ void consume(const abi::GroupedWeightGradientParams& p, Ring ring, int consumer) {
    const int count = Piece::count(p);
    const bool leads = threadIdx.x % 32 == 0;
    for (int index = static_cast<int>(blockIdx.x); index < count; index += static_cast<int>(gridDim.x)) {
        Piece piece(p, index);
        piece.rows = __shfl_sync(kAllLanes, piece.rows, 0); // the same in all lanes, for the compiler
        Sums sums;
        clear(sums);
        for (int row = 0; row < piece.rows; row += kDepth) {
            barrier::wait(ring.full(), ring.phase);
            const u32 left = ring.left() + static_cast<u32>(consumer * kSubtile);
            if (row + kDepth > piece.rows) {
                clearRows(ring, consumer, piece.rows - row);
            }
            multiplyStage<1, 1, 1>(sums, left, ring.right());
            wgmma::wait<1>();
            if (row > 0 && leads) {
                barrier::arrive(ring.emptyBefore());
            }
            ring.next();
        }
        wgmma::wait<0>();
        if (piece.rows > 0 && leads) {
            barrier::arrive(ring.emptyBefore());
        }
        if (piece.rows > 0 || !VT_ACCUMULATE) {
            store(p, piece, consumer, sums[0]);
        }
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    grouped_weight_gradient_hopper(const __grid_constant__ abi::GroupedWeightGradientParams p) {
    extern __shared__ __align__(1024) unsigned char shared[];
    Ring ring{sharedAddress(shared)};
    if (threadIdx.x == 0) {
        ring.begin();
    }
    __syncthreads();
    pdl::wait();
    pdl::launchDependents();
    const int warpgroup = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (warpgroup == kConsumers) {
        becomeProducer();
        if (threadIdx.x == kConsumers * 128) {
            produce(p, ring);
        }
    } else {
        becomeConsumer();
        consume(p, ring, warpgroup);
    }
}
