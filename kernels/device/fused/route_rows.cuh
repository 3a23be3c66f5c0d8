// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Norm, router product and top-k of many BF16 tokens, 16 a block: its warps norm two rows each into shared memory,
// share the contracted axis of the product on tensor cores, add their parts in the order of warps, and choose for two
// rows each. The axis is permuted so that a lane's share of a row, for weights and rows alike, is 16 bytes of every 64.
// VT_FORM and VT_ORDER as in route.cuh.

#include "device/abi/route.h"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/topk.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

namespace many_rows {

inline constexpr int kWarps = 8;
inline constexpr int kTokens = 16;
inline constexpr int kRows = kTokens / kWarps; ///< of a warp
inline constexpr int kPieces = ceilDiv(VT_DIM, 256);
inline constexpr int kSteps = VT_DIM / 32; ///< two of the tensor core's
inline constexpr int kTiles = ceilDiv(VT_EXPERTS, 8);
/// Neighbouring rows use different halves of the banks.
inline constexpr int kRowBytes = VT_DIM * 2 + (VT_DIM % 64 == 0 ? 64 : 0);
inline constexpr int kPartRow = kTiles * 8 + 8; ///< floats
static_assert(VT_DIM % 32 == 0, "a step takes 64 bytes of a row");

/// One row of x, normed, to memory and to shared memory. Rows after the last are read as the last and not stored.
__device__ __forceinline__ void normRow(const vitrine::kernels::abi::RouteParams& p, int firstToken, int row, int lane,
                                        unsigned char* shared) {
    const bool inside = firstToken + row < p.tokens;
    const i64 token = inside ? firstToken + row : p.tokens - 1;
    const bf16* from = static_cast<const bf16*>(p.x) + token * p.xStride;
    u32x4 raw[kPieces];
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
        const int at = (i * 32 + lane) * 8;
        raw[i] = at < VT_DIM ? *reinterpret_cast<const u32x4*>(from + at) : u32x4{};
    }
    float sum = 0;
#pragma unroll
    for (const u32x4& piece : raw) {
        float values[8];
        loadPiece(reinterpret_cast<const bf16*>(&piece), values);
#pragma unroll
        for (const float value : values) {
            sum += value * value;
        }
    }
    const float inverse = 1.0F / sqrtf(warpSum(sum) / static_cast<float>(VT_DIM) + p.eps);
    bf16* out = static_cast<bf16*>(p.normed) + token * p.normedStride;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
        const int at = (i * 32 + lane) * 8;
        if (at < VT_DIM) {
            float values[8], weights[8];
            loadPiece(reinterpret_cast<const bf16*>(&raw[i]), values);
            loadPiece(static_cast<const StorageOf<VT_NORM_DTYPE>*>(p.normWeight) + at, weights);
            normPiece<VT_FORM, bf16>(values, weights, inverse);
            storePiece(values, reinterpret_cast<bf16*>(shared + row * kRowBytes) + at);
            if (inside) {
                storePiece(values, out + at);
            }
        }
    }
}

__device__ __forceinline__ u32x4 sharedPiece(const unsigned char* at) {
    return *reinterpret_cast<const u32x4*>(at);
}

/// This warp's share of the logits of all 16 rows: steps warp, warp + kWarps, ...
__device__ __forceinline__ void multiply(const bf16* router, const unsigned char* rows, int warp, int lane,
                                         float (&sums)[kTiles][4]) {
    const int g = lane / 4;
    const unsigned char* low = rows + g * kRowBytes + lane % 4 * 16;
#pragma unroll(kTiles <= 4 ? 4 : 1)
    for (int step = warp; step < kSteps; step += kWarps) {
        const u32x4 top = sharedPiece(low + step * 64);
        const u32x4 bottom = sharedPiece(low + 8 * kRowBytes + step * 64);
        const u32 first[4] = {top.x, bottom.x, top.y, bottom.y};
        const u32 second[4] = {top.z, bottom.z, top.w, bottom.w};
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            const int expert = min(tile * 8 + g, VT_EXPERTS - 1);
            const u32x4 w =
                *reinterpret_cast<const u32x4*>(router + static_cast<i64>(expert) * VT_DIM + step * 32 + lane % 4 * 8);
            mma16816<bf16>(sums[tile], first, w.x, w.y);
            mma16816<bf16>(sums[tile], second, w.z, w.w);
        }
    }
}

} // namespace many_rows

extern "C" __global__ void __launch_bounds__(many_rows::kWarps * 32, VT_DIM <= 3072 && VT_EXPERTS <= 32 ? 2 : 1)
    route_rows(const __grid_constant__ vitrine::kernels::abi::RouteParams p) {
    using namespace many_rows;
    extern __shared__ __align__(16) unsigned char shared[];
    auto* parts = reinterpret_cast<float*>(shared + kTokens * kRowBytes); // (warps, tokens, kPartRow)
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int firstToken = static_cast<int>(blockIdx.x) * kTokens;
    pdl::wait();
    pdl::launchDependents();
#pragma unroll 1 // one row's values fill enough registers; other warps hide its loads
    for (int r = 0; r < kRows; ++r) {
        normRow(p, firstToken, warp * kRows + r, lane, shared);
    }
    __syncthreads();

    float sums[kTiles][4] = {};
    multiply(static_cast<const bf16*>(p.router), shared, warp, lane, sums);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
        float* at = parts + (warp * kTokens + lane / 4) * kPartRow + tile * 8 + lane % 4 * 2;
        at[0] = sums[tile][0];
        at[1] = sums[tile][1];
        at[8 * kPartRow] = sums[tile][2];
        at[8 * kPartRow + 1] = sums[tile][3];
    }
    __syncthreads();

    for (int r = 0; r < kRows; ++r) {
        const int row = warp * kRows + r;
        const i64 token = firstToken + row;
        if (token >= p.tokens) {
            break;
        }
        float logits[ceilDiv(VT_EXPERTS, 32)];
#pragma unroll
        for (int i = 0; i < ceilDiv(VT_EXPERTS, 32); ++i) {
            const int expert = i * 32 + lane;
            float logit = -__int_as_float(0x7F800000);
            if (expert < VT_EXPERTS) {
                logit = 0;
#pragma unroll
                for (int part = 0; part < kWarps; ++part) {
                    logit += parts[(part * kTokens + row) * kPartRow + expert];
                }
                if (p.bias != nullptr) {
                    logit += toFloat(static_cast<const StorageOf<VT_BIAS_DTYPE>*>(p.bias)[expert]);
                }
            }
            logits[i] = logit;
        }
        chooseExperts<VT_EXPERTS, VT_ORDER>(logits, p.k, p.normalize != 0, p.ids + token * p.k,
                                            p.weights + token * p.k);
    }
}

} // namespace vt
