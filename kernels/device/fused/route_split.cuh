// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Norm, router product and top-k of a batch of BF16 tokens, 8 at a time (sm_90 and later). The four blocks of a cluster
// share the contracted axis, and so do a block's warps, whose weights are in registers before pdl::wait(): a lane has
// 16 bytes of every 64 of a token's row and of the experts' rows, as in route_rows.cuh. Parts of the sums of squares go
// to all blocks, parts of the logits to the block that chooses for the token; both are added in the order of warps.
// VT_FORM and VT_ORDER as in route.cuh.

#include "device/abi/route.h"
#include "device/lib/cluster.cuh"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/topk.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

namespace route_split {

inline constexpr int kRanks = 4; ///< blocks of a cluster
inline constexpr int kWarps = 8;
inline constexpr int kTokens = 8;
inline constexpr int kParts = kRanks * kWarps;
inline constexpr int kChosen = kTokens / kRanks;                       ///< tokens that a block chooses for
inline constexpr int kSteps = VT_DIM / 32;                             ///< two of the tensor core's
inline constexpr int kMost = ceilDiv(ceilDiv(kSteps, kRanks), kWarps); ///< steps of a warp
inline constexpr int kTiles = ceilDiv(VT_EXPERTS, 16);
static_assert(VT_DIM % 32 == 0, "a step takes 64 bytes of a row");

struct Shared {
    float squares[kTokens][kParts + 4]; ///< padded: eight rows start in different banks
    float parts[kChosen][kParts][kTiles * 16];
};

using NormWeight = StorageOf<VT_NORM_DTYPE>;

/// The steps of a warp: first, first + kWarps, ... below last.
struct Share {
    int first, last;
    __device__ __forceinline__ Share(int rank, int warp)
        : first(kSteps * rank / kRanks + warp), last(kSteps * (rank + 1) / kRanks) {}
    __device__ __forceinline__ bool has(int i) const { return first + i * kWarps < last; }
    /// This lane's first column of step i.
    __device__ __forceinline__ int column(int i) const {
        return (first + i * kWarps) * 32 + static_cast<int>(threadIdx.x) % 4 * 8;
    }
};

/// What a lane needs besides x. Steps and experts that there are not: zeros and the last expert, whose sums nobody
/// reads.
struct Weights {
    u32x4 router[kMost][kTiles][2];
    alignas(16) NormWeight norm[kMost][8];

    __device__ __forceinline__ Weights(const vitrine::kernels::abi::RouteParams& p, const Share& share) {
        const int g = static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
        for (int i = 0; i < kMost; ++i) {
#pragma unroll
            for (int row = 0; row < 2 * kTiles; ++row) {
                const i64 expert = min(row * 8 + g, VT_EXPERTS - 1);
                const bf16* from = static_cast<const bf16*>(p.router) + expert * VT_DIM + share.column(i);
                router[i][row / 2][row % 2] = share.has(i) ? *reinterpret_cast<const u32x4*>(from) : u32x4{};
            }
            if (share.has(i)) {
                const auto* from =
                    reinterpret_cast<const u32x4*>(static_cast<const NormWeight*>(p.normWeight) + share.column(i));
#pragma unroll
                for (int word = 0; word < static_cast<int>(sizeof(NormWeight)) / 2; ++word) {
                    reinterpret_cast<u32x4*>(norm[i])[word] = from[word];
                }
            }
        }
    }
};

/// The factor of the norm of row lane / 4, from the parts of all warps.
__device__ __forceinline__ float normFactor(const Shared& shared, float eps) {
    constexpr int kEach = kParts / 4; // lanes of a row share the parts
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float* from = &shared.squares[lane / 4][lane % 4 * kEach];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        sum += from[i];
    }
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    return 1.0F / sqrtf(sum / static_cast<float>(VT_DIM) + eps);
}

/// The logits of tokens of this block, a warp for each, and what they choose.
__device__ __forceinline__ void choose(const vitrine::kernels::abi::RouteParams& p, const Shared& shared, int warp,
                                       i64 token) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float logits[ceilDiv(VT_EXPERTS, 32)];
#pragma unroll
    for (int i = 0; i < ceilDiv(VT_EXPERTS, 32); ++i) {
        const int expert = i * 32 + lane;
        logits[i] = -__int_as_float(0x7F800000);
        if (expert < VT_EXPERTS) {
            float logit = 0;
#pragma unroll
            for (int part = 0; part < kParts; ++part) {
                logit += shared.parts[warp][part][expert];
            }
            if (p.bias != nullptr) {
                logit += toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[expert]);
            }
            logits[i] = logit;
        }
    }
    chooseExperts<VT_EXPERTS, VT_ORDER>(logits, p.k, p.normalize != 0, p.ids + token * p.k, p.weights + token * p.k);
}

/// Gives the sums of a warp to the blocks that choose the experts of their tokens.
__device__ __forceinline__ void handOver(Shared& shared, int part, const float (&sums)[kTiles][4]) {
    using Blocks = Cluster<kRanks>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = lane / 4;
    // A lane's sums are of tokens 2 (lane % 4) and the next, which are those of one block.
    static_assert(kChosen == 2 && kRanks == 4, "the columns of a lane's sums");
    Shared* chooser = Blocks::at(&shared, lane % 4);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            chooser->parts[j % 2][part][tile * 16 + j / 2 * 8 + row] = sums[tile][j];
        }
    }
}

} // namespace route_split

extern "C" __global__ void __launch_bounds__(route_split::kWarps * 32)
    route_split_rows(const __grid_constant__ vitrine::kernels::abi::RouteParams p) {
    using namespace route_split;
    using Blocks = Cluster<kRanks>;
    __shared__ __align__(16) Shared shared;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int rank = Blocks::rank();
    const int part = rank * kWarps + warp;
    const int firstToken = static_cast<int>(blockIdx.x) / kRanks * kTokens;
    const int row = lane / 4;
    const bool inside = firstToken + row < p.tokens;
    const i64 token = inside ? firstToken + row : p.tokens - 1;
    const Share share(rank, warp);
    Blocks::arrive();
    const Weights weights(p, share);
    pdl::launchDependents();
    pdl::wait();

    u32x4 x[kMost];
    const bf16* from = static_cast<const bf16*>(p.x) + token * p.xStride;
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
        x[i] = share.has(i) ? *reinterpret_cast<const u32x4*>(from + share.column(i)) : u32x4{};
    }
    float squares = 0;
#pragma unroll
    for (const u32x4& piece : x) {
        float values[8];
        loadPiece(reinterpret_cast<const bf16*>(&piece), values);
#pragma unroll
        for (const float value : values) {
            squares += value * value;
        }
    }
    squares += __shfl_xor_sync(kAllLanes, squares, 1);
    squares += __shfl_xor_sync(kAllLanes, squares, 2);
    Blocks::wait(); // all blocks of the cluster have begun
    *Blocks::at(&shared.squares[row][part], lane % 4) = squares;
    Blocks::sync();

    const float inverse = normFactor(shared, p.eps);
    bf16* out = static_cast<bf16*>(p.normed) + token * p.normedStride;
    float sums[kTiles][4] = {};
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
        float values[8], scale[8];
        loadPiece(reinterpret_cast<const bf16*>(&x[i]), values);
        loadPiece(weights.norm[i], scale);
        normPiece<VT_FORM, bf16>(values, scale, inverse);
        u32x4 normed;
        storePiece(values, reinterpret_cast<bf16*>(&normed));
        if (share.has(i)) {
            if (inside) {
                *reinterpret_cast<u32x4*>(out + share.column(i)) = normed;
            }
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
                const u32x4& top = weights.router[i][tile][0];
                const u32x4& bottom = weights.router[i][tile][1];
                mma16816<bf16>(sums[tile], {top.x, bottom.x, top.y, bottom.y}, normed.x, normed.y);
                mma16816<bf16>(sums[tile], {top.z, bottom.z, top.w, bottom.w}, normed.z, normed.w);
            }
        }
    }
    handOver(shared, part, sums);
    Blocks::sync();
    const i64 chosen = firstToken + rank * kChosen + warp;
    if (warp < kChosen && chosen < p.tokens) {
        choose(p, shared, warp, chosen);
    }
}

} // namespace vt
