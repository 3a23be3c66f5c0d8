// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Norm, router product and top-k of a token. VT_CLUSTER blocks (one before sm_90) share the experts of a token; the
// first of them chooses. VT_FORM is RmsNormOrder. VT_ORDER 0: choose, then softmax over the chosen; 1: softmax over
// all, then choose. Router weights are loaded before pdl::wait().

#include "device/abi/route.h"
#include "device/lib/cluster.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/topk.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

namespace route {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kExperts = ceilDiv(VT_EXPERTS, VT_CLUSTER); ///< of a block
inline constexpr int kPieces = ceilDiv(VT_DIM, kThreads * 8);
inline constexpr int kMost = kPieces == 1 ? 8 : 4;
inline constexpr int kGroup = kExperts < kMost ? kExperts : kMost; ///< whose weights are in registers at a time
inline constexpr int kPadded = ceilDiv(VT_EXPERTS, 4) * 4;
static_assert(VT_EXPERTS <= kThreads && VT_DIM % 8 == 0, "a thread for an expert");

using Blocks = Cluster<VT_CLUSTER>;

struct Shared {
    float sums[kGroup][kWarps];
    float slots[kWarps];
    alignas(16) float logits[kPadded];
    float chosen[kThreads];
    int numbers[kThreads];
};

using Weight = StorageOf<VT_W_DTYPE>;

struct Weights {
    alignas(16) Weight w[kGroup][kPieces][8];
};

__device__ __forceinline__ void loadWeights(const Weight* router, int first, Weights& out) {
#pragma unroll
    for (int e = 0; e < kGroup; ++e) {
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece) {
            const int at = (piece * kThreads + static_cast<int>(threadIdx.x)) * 8;
            if (first + e < VT_EXPERTS && at < VT_DIM) {
                const auto* from = reinterpret_cast<const u32x4*>(router + static_cast<i64>(first + e) * VT_DIM + at);
#pragma unroll
                for (int i = 0; i < static_cast<int>(sizeof(Weight)) / 2; ++i) {
                    reinterpret_cast<u32x4*>(out.w[e][piece])[i] = from[i];
                }
            }
        }
    }
}

/// How many of the values come before number `mine` in order: larger ones, equal ones of lower number.
__device__ __forceinline__ int rankOf(const float* values, int mine) {
    const u64 key = rankKey(values[mine], mine);
    int rank = 0;
#pragma unroll 8
    for (int i = 0; i < VT_EXPERTS; ++i) {
        rank += rankKey(values[i], i) > key ? 1 : 0;
    }
    return rank;
}

__device__ __forceinline__ void choose(const vitrine::kernels::abi::RouteParams& p, Shared& shared, i64 token) {
    const int mine = static_cast<int>(threadIdx.x);
    if constexpr (VT_ORDER == 1) {
        // Each warp looks at all logits by itself: only the sum is the block's.
        float maximum = shared.logits[0];
        for (int i = mine % 32; i < VT_EXPERTS; i += 32) {
            maximum = fmaxf(maximum, shared.logits[i]);
        }
        maximum = warpMax(maximum);
        const float share = mine < VT_EXPERTS ? expf(shared.logits[mine] - maximum) : 0.0F;
        const float sum = blockSum(share, shared.slots);
        if (mine < VT_EXPERTS) {
            shared.logits[mine] = share / sum;
        }
        __syncthreads();
    }
    if (mine < VT_EXPERTS) {
        const int rank = rankOf(shared.logits, mine);
        if (rank < p.k) {
            shared.chosen[rank] = shared.logits[mine];
            shared.numbers[rank] = mine;
        }
    }
    __syncthreads();
    if (mine < p.k) {
        float value = shared.chosen[mine];
        if (VT_ORDER == 0 || p.normalize != 0) {
            float sum = 0;
            for (int j = 0; j < p.k; ++j) {
                sum += VT_ORDER == 0 ? expf(shared.chosen[j] - shared.chosen[0]) : shared.chosen[j];
            }
            value = (VT_ORDER == 0 ? expf(value - shared.chosen[0]) : value) / sum;
        }
        p.ids[token * p.k + mine] = shared.numbers[mine];
        p.weights[token * p.k + mine] = value;
    }
}

/// Reads a token's row into x and norms it there; the cluster's first block writes it to `normed`.
template <class X>
__device__ __forceinline__ void normToken(const vitrine::kernels::abi::RouteParams& p, Shared& shared, i64 token,
                                          int rank, const float (&norm)[kPieces][8], float (&x)[kPieces][8]) {
    const int thread = static_cast<int>(threadIdx.x);
    float squares = 0;
    const X* from = static_cast<const X*>(p.x) + token * p.xStride;
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
        const int at = (piece * kThreads + thread) * 8;
        if (at < VT_DIM) {
            loadPiece(from + at, x[piece]);
#pragma unroll
            for (const float value : x[piece]) {
                squares += value * value;
            }
        }
    }
    const float inverse = 1.0F / sqrtf(blockSum(squares, shared.slots) / static_cast<float>(VT_DIM) + p.eps);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
        const int at = (piece * kThreads + thread) * 8;
        if (at < VT_DIM) {
            normPiece<VT_FORM, X>(x[piece], norm[piece], inverse);
#pragma unroll
            for (float& value : x[piece]) {
                value = rounded<X>(value);
            }
            if (rank == 0) {
                storePiece(x[piece], static_cast<X*>(p.normed) + token * p.normedStride + at);
            }
        }
    }
}

} // namespace route

extern "C" __global__ void __launch_bounds__(route::kThreads)
    route_token(const __grid_constant__ vitrine::kernels::abi::RouteParams p) {
    using namespace route;
    using X = StorageOf<VT_X_DTYPE>;
    __shared__ Shared shared;
    const int thread = static_cast<int>(threadIdx.x);
    const int rank = Blocks::rank();
    const i64 token = blockIdx.x / VT_CLUSTER;
    const int firstExpert = rank * kExperts;
    const auto* router = static_cast<const Weight*>(p.router);
    Blocks::arrive();
    Weights weights;
    loadWeights(router, firstExpert, weights);
    float norm[kPieces][8];
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
        const int at = (piece * kThreads + thread) * 8;
        if (at < VT_DIM) {
            loadPiece(static_cast<const StorageOf<VT_NORM_DTYPE>*>(p.normWeight) + at, norm[piece]);
        }
    }
    pdl::launchDependents();
    pdl::wait();

    float x[kPieces][8] = {};
    normToken<X>(p, shared, token, rank, norm, x);
    Blocks::wait(); // the first block has begun, and its shared memory may be written
    for (int group = 0; group < kExperts; group += kGroup) {
        if (group > 0) {
            loadWeights(router, firstExpert + group, weights);
        }
#pragma unroll
        for (int e = 0; e < kGroup; ++e) {
            float sum = 0;
#pragma unroll
            for (int piece = 0; piece < kPieces; ++piece) {
                if ((piece * kThreads + thread) * 8 < VT_DIM) {
#pragma unroll
                    for (int i = 0; i < 8; ++i) {
                        sum += toFloat(weights.w[e][piece][i]) * x[piece][i];
                    }
                }
            }
            sum = warpSum(sum);
            if (thread % 32 == 0) {
                shared.sums[e][thread / 32] = sum;
            }
        }
        __syncthreads();
        const int expert = firstExpert + group + thread;
        if (thread < kGroup && group + thread < kExperts && expert < VT_EXPERTS) {
            float logit = 0;
#pragma unroll
            for (int warp = 0; warp < kWarps; ++warp) {
                logit += shared.sums[thread][warp];
            }
            if (p.bias != nullptr) {
                logit += toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[expert]);
            }
            *Blocks::at(&shared.logits[expert], 0) = logit;
        }
        __syncthreads();
    }
    Blocks::sync();
    if (rank == 0) {
        choose(p, shared, token);
    }
}

} // namespace vt
