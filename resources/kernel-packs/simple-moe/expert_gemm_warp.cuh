// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Grouped expert products without tensor cores: a warp makes one result after the other, its lanes share the contracted
// axis. What device/experts/expert_tiles.cuh says of tiles holds: x comes in blocks of 64 permuted values, and a gated
// product leaves such blocks to the next one.

#include "device/abi/weight_format.h"
#include "device/experts/expert_tiles.cuh"
#include "device/formats/mxfp4.cuh"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/warp.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;
using namespace vt::grouped;

constexpr int kThreads = 256;

/// Value `at` of the contracted axis in weight row `row`; rows of all experts count on.
__device__ __forceinline__ float weightAt(const abi::ExpertGemmParams& p, i64 row, int at) {
#if VT_W_FORMAT == VT_FORMAT_MXFP4
    const u8 pair = static_cast<const u8*>(p.weights)[row * (kIn / 2) + at / 2];
    const u8 scale = static_cast<const u8*>(p.scales)[row * (kIn / 32) + at / 32];
    return mxfp4Value(at % 2 == 0 ? pair & 15U : pair >> 4) * mxfp4Scale(scale);
#else
    return toFloat(static_cast<const bf16*>(p.weights)[row * kIn + at]);
#endif
}

/// Where `place` (0..7) of piece `piece` (0..7) of a tile's row lies in a block.
__device__ __forceinline__ int byteAt(int row, int piece, int place) {
    return static_cast<int>(swizzled<128>(row, piece * 16)) + 2 * place;
}

/// The product of weight row `weightRow` of `expert` with a row of the tile, for every lane.
__device__ __forceinline__ float dot(const abi::ExpertGemmParams& p, const u8* tile, int row, int expert,
                                     int weightRow) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const i64 weights = static_cast<i64>(expert) * kOut + weightRow;
    float sum = 0;
#pragma unroll 1
    for (int block = 0; block < kBlocks; ++block) {
        const u8* x = tile + static_cast<i64>(block) * kBlockBytes;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int piece = lane / 4;
            const int place = lane % 4 * 2 + half;
            // After the end x is zero, whatever the weight.
            const int at = min(valueAt(block, kBlocks, piece, place), kIn - 1);
            const float value = toFloat(*reinterpret_cast<const bf16*>(x + byteAt(row, piece, place)));
            sum = fmaf(value, weightAt(p, weights, at), sum);
        }
    }
    return warpSum(sum) + biasOf(p, expert, weightRow);
}

} // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    expert_gemm_warp(const __grid_constant__ abi::ExpertGemmParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int tile = static_cast<int>(blockIdx.y);
    if (tile >= *p.tileCount) {
        return;
    }
    const int expert = p.tiles[2 * tile];
    const int rows = p.tiles[2 * tile + 1];
    const int group = static_cast<int>(blockIdx.x); // of 64 features
    const int piece = static_cast<int>(threadIdx.x) / 32;
    const bool first = threadIdx.x % 32 == 0;
    const u8* x = static_cast<const u8*>(p.x) + static_cast<i64>(tile) * kBlocks * kBlockBytes;
#pragma unroll 1
    for (int place = 0; place < 8; ++place) {
        if constexpr (kGated) {
            const int feature = valueAt(group, kGroups, piece, place);
            u8* out = static_cast<u8*>(p.result) + (static_cast<i64>(tile) * kGroups + group) * kBlockBytes;
            const int inside = min(feature, kFeatures - 1);
            for (int row = 0; row < rows; ++row) {
                const float gate = dot(p, x, row, expert, VT_HALVES ? inside : 2 * inside);
                const float up = dot(p, x, row, expert, VT_HALVES ? inside + kFeatures : 2 * inside + 1);
                const float value = activate(p, gate, up);
                if (first) { // what is after the last feature has to be zero
                    *reinterpret_cast<bf16*>(out + byteAt(row, piece, place)) =
                        fromFloat<bf16>(feature < kFeatures ? value : 0.0F);
                }
            }
        } else {
            const int feature = group * kBlock + piece * 8 + place;
            for (int row = 0; row < rows && feature < kFeatures; ++row) {
                const float value = dot(p, x, row, expert, feature);
                if (first) {
                    const i64 pair = p.slots[tile * kTileRows + row];
                    static_cast<bf16*>(p.result)[pair * p.resultStride + feature] = fromFloat<bf16>(value);
                }
            }
        }
    }
}
