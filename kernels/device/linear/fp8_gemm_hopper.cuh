// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// E4M3 rows times E4M3 matrices, or times the matrices of experts, on the tensor cores of Hopper.
//
// A block makes 128 outputs of 128 rows. Four warps copy tiles of 128 inputs into a ring: a tensor map brings those of
// the weight, and each warp 32 rows of x, wherever these lie. Two warpgroups multiply 64 rows each. The tensor cores of
// Hopper add products of E4M3 in fewer bits than float32 has (DeepSeek-V3 Technical Report, section 3.3.2), so they add
// 128 inputs only; these sums are multiplied by the scales of their row and block, and added in float32.

#include "device/abi/dtype.h"
#include "device/abi/expert_sort.h"
#include "device/abi/fp8_gemm.h"
#include "device/lib/async.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/warp.cuh"
#include "device/lib/wgmma_bytes.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

constexpr int kRows = abi::kExpertTile; ///< of x
constexpr int kOutputs = 128;
constexpr int kChunk = 128; ///< inputs of a stage, and of a scale
constexpr int kStages = VT_STAGES;
constexpr int kAhead = 3; ///< stages of x whose copies are under way while the next one is begun
constexpr int kConsumers = 2;
constexpr int kTileBytes = 128 * kChunk;
constexpr int kBarriersAt = kStages * 2 * kTileBytes;
constexpr int kCopyWarps = 4;
static_assert(kAhead < kStages, "a stage is full before it is asked for again");

using Scale = StorageOf<VT_SCALE_DTYPE>;
using Result = StorageOf<VT_OUT_DTYPE>;

/// The block's rows and matrix.
struct Place {
    int rows = 0; ///< of the block
    int expert = 0;
    int firstRow = 0;           ///< without tiles
    const int* slots = nullptr; ///< of the tile, or null

    __device__ __forceinline__ explicit Place(const abi::Fp8GemmParams& p) {
        const int tile = static_cast<int>(blockIdx.x);
        if (!VT_TILES) {
            firstRow = tile * kRows;
            rows = min(kRows, p.rows - firstRow);
        } else if (tile < *p.tileCount) {
            expert = p.tiles[2 * tile];
            rows = p.tiles[2 * tile + 1];
            slots = p.slots + tile * kRows;
        }
    }
    __device__ __forceinline__ int resultRow(int row) const { return VT_TILES ? slots[row] : firstRow + row; }
    /// What is behind the last row is that one.
    __device__ __forceinline__ int xRow(const abi::Fp8GemmParams& p, int row) const {
        return resultRow(min(row, rows - 1)) / (VT_TILES ? p.pairsPerRow : 1);
    }
};

__device__ __forceinline__ int firstOutput() {
    return static_cast<int>(blockIdx.y) * kOutputs;
}

struct Ring {
    u32 base;
    int stage = 0;
    u32 phase = 0;

    __device__ __forceinline__ u32 x() const { return base + static_cast<u32>(stage * 2 * kTileBytes); }
    __device__ __forceinline__ u32 weight() const { return x() + kTileBytes; }
    __device__ __forceinline__ u32 full() const { return fullOf(stage); }
    __device__ __forceinline__ u32 empty() const { return full() + 8 * kStages; }
    __device__ __forceinline__ u32 fullOf(int number) const {
        return base + static_cast<u32>(kBarriersAt + 8 * number);
    }
    __device__ __forceinline__ void next() {
        if (++stage == kStages) {
            stage = 0;
            phase ^= 1;
        }
    }
    __device__ void initBarriers() const {
        for (int i = 0; i < kStages; ++i) {
            barrier::init(fullOf(i), kCopyWarps + 1);
            barrier::init(fullOf(i) + 8 * kStages, 4 * kConsumers);
        }
        barrier::fenceInit();
    }
};

/// Of x, 32 rows by each warp: eight lanes copy a row's 128 bytes.
struct RowCopies {
    int rows[8];

    __device__ __forceinline__ RowCopies(const abi::Fp8GemmParams& p, const Place& place, int warp, int lane) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            rows[i] = place.xRow(p, 32 * warp + 4 * i + lane / 8);
        }
    }
    __device__ __forceinline__ void copy(const abi::Fp8GemmParams& p, int chunk, int warp, int lane, u32 to) const {
        const int first = chunk * kChunk + lane % 8 * 16;
        const bool inside = first < p.in;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            copyAsync16(to + swizzled<128>(32 * warp + 4 * i + lane / 8, lane % 8 * 16),
                        p.x + static_cast<i64>(rows[i]) * p.in + (inside ? first : 0), inside);
        }
    }
};

__device__ void copyTiles(const abi::Fp8GemmParams& p, const Place& place, Ring ring) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const int warp = thread / 32, lane = thread % 32;
    const int chunks = ceilDiv(p.in, kChunk);
    const RowCopies copies(p, place, warp, lane);
    int ready = 0; // the stage whose copies are waited for
    for (int chunk = 0; chunk < chunks + kAhead; ++chunk) {
        if (chunk < chunks) {
            barrier::wait(ring.empty(), ring.phase ^ 1);
            if (thread == 0) {
                barrier::arriveExpect(ring.full(), kTileBytes);
                copyTile2(ring.weight(), &p.weightMap, chunk * kChunk / 2, place.expert * p.out + firstOutput(),
                          ring.full());
            }
            copies.copy(p, chunk, warp, lane, ring.x());
            ring.next();
        }
        copyAsyncCommit();
        if (chunk >= kAhead) {
            copyAsyncWait<kAhead>();
            fenceAsyncProxy();
            __syncwarp();
            if (lane == 0) {
                barrier::arrive(ring.fullOf(ready));
            }
            ready = ready + 1 == kStages ? 0 : ready + 1;
        }
    }
}

/// The scales of a lane's two rows times those of the block's outputs, a chunk ahead.
struct Factors {
    const float* rows[2];
    const Scale* blocks;
    float next[2];

    __device__ __forceinline__ Factors(const abi::Fp8GemmParams& p, const Place& place, int row) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            rows[i] = p.xScales + static_cast<i64>(place.xRow(p, row + 8 * i)) * p.groups;
        }
        const i64 block = static_cast<i64>(place.expert) * p.scaleRows + blockIdx.y;
        blocks = static_cast<const Scale*>(p.scales) + block * p.groups;
        load(0);
    }
    __device__ __forceinline__ void load(int chunk) {
        const float block = toFloat(blocks[chunk]);
        next[0] = rows[0][chunk] * block;
        next[1] = rows[1][chunk] * block;
    }
};

/// Sums of 64 rows and 128 outputs, in the fragments of wgmma.
__device__ __forceinline__ void multiply(const abi::Fp8GemmParams& p, const Place& place, Ring ring, int consumer,
                                         int row, float (&sums)[64]) {
    const int chunks = ceilDiv(p.in, kChunk);
    Factors factors(p, place, row);
    float part[64];
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const float upper = factors.next[0], lower = factors.next[1];
        barrier::wait(ring.full(), ring.phase);
        const u64 x = wgmma::descriptor128(ring.x() + static_cast<u32>(consumer * kTileBytes / 2));
        const u64 weight = wgmma::descriptor128(ring.weight());
#pragma unroll
        for (int i = 0; i < 64; ++i) {
            asm volatile("" : "=f"(part[i])); // the first product overwrites what is in there
        }
        wgmma::fence();
#pragma unroll
        for (int i = 0; i < kChunk / 32; ++i) {
            wgmma::runBytes(part, x + 2 * static_cast<u64>(i), weight + 2 * static_cast<u64>(i), i);
        }
        wgmma::commit();
        factors.load(min(chunk + 1, chunks - 1));
        wgmma::wait<0>();
        if (threadIdx.x % 32 == 0) {
            barrier::arrive(ring.empty());
        }
#pragma unroll
        for (int i = 0; i < 64; ++i) {
            asm volatile("" : "+f"(part[i])); // not before the products are done
            sums[i] = fmaf(i % 4 < 2 ? upper : lower, part[i], sums[i]);
        }
        ring.next();
    }
}

/// Two neighbouring results.
__device__ __forceinline__ void store(const abi::Fp8GemmParams& p, int expert, i64 row, int output, float first,
                                      float second) {
#if VT_BIAS_DTYPE
    const auto* bias = static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias) + expert * p.biasStride + output;
    first += toFloat(bias[0]);
    second += toFloat(bias[1]);
#endif
#if VT_RESIDUAL_DTYPE
    const auto* residual =
        static_cast<const StorageOf<VT_RESIDUAL_DTYPE>*>(p.residual) + row * p.residualStride + output;
    first += toFloat(residual[0]);
    second += toFloat(residual[1]);
#endif
    Result* to = static_cast<Result*>(p.result) + row * p.resultStride + output;
    if constexpr (sizeof(Result) == 2) {
        *reinterpret_cast<u32*>(to) = packBf16(first, second);
    } else {
        to[0] = fromFloat<Result>(first);
        to[1] = fromFloat<Result>(second);
    }
}

__device__ void consume(const abi::Fp8GemmParams& p, const Place& place, const Ring& ring, int consumer) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = consumer * 64 + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
    float sums[64] = {};
    multiply(p, place, ring, consumer, row, sums);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (row + 8 * half >= place.rows) {
            continue;
        }
        const i64 to = place.resultRow(row + 8 * half);
#pragma unroll
        for (int j = 0; j < kOutputs / 8; ++j) {
            const int output = firstOutput() + 8 * j + lane % 4 * 2;
            if (output < p.out) {
                store(p, place.expert, to, output, sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
            }
        }
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(kConsumers * 128 + kCopyWarps * 32, 1)
    fp8_gemm_hopper(const __grid_constant__ abi::Fp8GemmParams p) {
    extern __shared__ __align__(1024) unsigned char shared[];
    const Ring ring{sharedAddress(shared)};
    if (threadIdx.x == 0) {
        ring.initBarriers();
    }
    pdl::wait(); // x is a result, and so is which tiles there are
    pdl::launchDependents();
    __syncthreads();
    const Place place(p);
    if (place.rows <= 0) {
        return;
    }
    const int warpgroup = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (warpgroup == kConsumers) {
        wgmma::giveRegisters<40>();
        copyTiles(p, place, ring);
    } else {
        wgmma::takeRegisters<232>();
        consume(p, place, ring, warpgroup);
    }
}
