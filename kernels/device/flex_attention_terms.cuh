// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What all forms of FlexAttention's backward share: from a score and dP = gradOut V^T to the weight P and the gradient of the
// score before its program,
//   P = exp(post - lse), dS = P (dP - delta), gradient = scoreGradient(pre, dS); 0 where the mask forbids,
// and the sums of captured tensors' gradients. Those are summed in 64-bit integers, so that the order of atomic additions
// does not matter: the pass for dq finds the largest term, which fixes the unit; the pass for dk and dv adds.

#include "device/flex_attention_tiles.cuh"
#include "device/flex_unit.cuh"

namespace vt {

namespace flex {

struct Element {
    int batch, head, query, key;
};

/// One element: `score` is q.k and becomes its gradient, `dWeight` is dP and becomes P.
template <class Sink>
__device__ __forceinline__ void differentiate(const FlexAttentionParams& p, const Element& at, bool tested,
                                              bool partial, bool nothing, float offset, float delta, float& score,
                                              float& dWeight, Sink&& sink) {
    const float pre = score * p.scale;
    float post = pre;
    if constexpr (VT_SCORE != 0) {
        post = scoreMod(pre, at.batch, at.head, at.query, at.key, p.scoreCaptures);
    }
    bool allowed = true;
    if (tested) {
        allowed = at.query < p.queries && at.key < p.keys && !nothing;
        if constexpr (VT_MASK == 1) {
            allowed = allowed && (!partial || maskMod(at.batch, at.head, at.query, at.key, p.maskCaptures));
        }
    }
    const float weight = allowed ? exp2Fast(fmaf(post, kLog2e, -offset)) : 0.0F;
    const float upstream = weight * (dWeight - delta);
    float gradient = upstream;
    if constexpr (VT_SCORE != 0) {
        gradient = allowed ? scoreGradient(pre, upstream, at.batch, at.head, at.query, at.key, p.scoreCaptures) : 0.0F;
    }
    if constexpr (VT_CAPTURE_GRADIENTS != 0) {
        if (allowed) {
            captureGradients(pre, upstream, at.batch, at.head, at.query, at.key, p.scoreCaptures, sink);
        }
    }
    score = gradient;
    dWeight = weight;
}

/// The largest magnitude of a capture gradient's terms, as the bits of a float.
struct LargestTerm {
    float largest[VT_CAPTURE_GRADIENTS + 1] = {};

    __device__ __forceinline__ void operator()(int gradient, i64, float value) {
        largest[gradient] = fmaxf(largest[gradient], fabsf(value));
    }
    __device__ __forceinline__ void finish(unsigned* to) const {
#pragma unroll
        for (int g = 0; g < VT_CAPTURE_GRADIENTS; ++g) {
            const float all = warpMax(largest[g]);
            if (threadIdx.x % 32 == 0) {
                atomicMax(to + g, __float_as_uint(all)); // non-negative floats order as their bits
            }
        }
    }
};

/// Terms of the capture gradients. A thread adds up neighbours that go to the same element, in float inside a tile;
/// lanes that agree add up at the end.
struct TermSums {
    const FlexAttentionParams* p;
    float unit[VT_CAPTURE_GRADIENTS + 1];
    i64 place[VT_CAPTURE_GRADIENTS + 1];
    float tileSum[VT_CAPTURE_GRADIENTS + 1];
    i64 sum[VT_CAPTURE_GRADIENTS + 1];

    __device__ __forceinline__ explicit TermSums(const FlexAttentionParams& params) : p(&params) {
#pragma unroll
        for (int g = 0; g < VT_CAPTURE_GRADIENTS; ++g) {
            unit[g] = unitOf(params.captureLargest[g], params.captureBits);
            place[g] = -1;
            tileSum[g] = 0;
            sum[g] = 0;
        }
    }
    __device__ __forceinline__ void operator()(int gradient, i64 offset, float value) {
#pragma unroll
        for (int g = 0; g < VT_CAPTURE_GRADIENTS; ++g) {
            if (g == gradient) {
                if (place[g] != offset) {
                    flush(g);
                    place[g] = offset;
                }
                tileSum[g] += value;
            }
        }
    }
    __device__ __forceinline__ void endTile() {
#pragma unroll
        for (int g = 0; g < VT_CAPTURE_GRADIENTS; ++g) {
            sum[g] += __float2ll_rn(tileSum[g] * unit[g]);
            tileSum[g] = 0;
        }
    }
    __device__ __forceinline__ void flush(int g) {
        sum[g] += __float2ll_rn(tileSum[g] * unit[g]);
        tileSum[g] = 0;
        if (sum[g] != 0) {
            atomicAdd(p->captureSums[g] + place[g], static_cast<u64>(sum[g]));
        }
        sum[g] = 0;
    }
    __device__ __forceinline__ void finish() {
#pragma unroll
        for (int g = 0; g < VT_CAPTURE_GRADIENTS; ++g) {
            const i64 first = __shfl_sync(kAllLanes, place[g], 0);
            if (__all_sync(kAllLanes, place[g] == first)) {
#pragma unroll
                for (int lanes = 16; lanes > 0; lanes /= 2) {
                    sum[g] += __shfl_xor_sync(kAllLanes, sum[g], lanes);
                }
                sum[g] = threadIdx.x % 32 == 0 ? sum[g] : 0;
            }
            flush(g);
        }
    }
};

} // namespace flex

} // namespace vt
