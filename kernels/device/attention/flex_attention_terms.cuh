// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What all forms of FlexAttention's backward share: from a score and dP = gradOut V^T to the weight P and the gradient
// of the score before its program,
//   P = exp(post - lse), dS = P (dP - delta), gradient = scoreGradient(pre, dS); 0 where the mask forbids,
// and the sums of captured tensors' gradients. Those are summed in 64-bit integers, so that the order of atomic
// additions does not matter: the pass for dq finds the largest term, which fixes the unit; the pass for dk and dv adds.

#include "device/attention/flex_attention_tiles.cuh"
#include "device/attention/flex_unit.cuh"

namespace vt {

namespace flex {

struct Element {
    int batch, head, query, key;
};

/// Whether an element takes part where that is not sure. Without branches: what the mask reads comes for all elements
/// of a tile at once.
__device__ __forceinline__ bool takesPart(const FlexAttentionParams& p, const Element& at, bool partial, bool nothing) {
    bool allowed = (at.query < p.queries) & (at.key < p.keys) & !nothing;
    if constexpr (VT_MASK == 1) {
        allowed &= !partial | maskMod(at.batch, at.head, at.query, at.key, p.maskCaptures);
    }
    return allowed;
}

/// P of a score q.k that takes part.
__device__ __forceinline__ float weightOf(const FlexAttentionParams& p, const Element& at, float score, float offset) {
    if constexpr (VT_SCORE != 0) {
        const float post = scoreMod(score * p.scale, at.batch, at.head, at.query, at.key, p.scoreCaptures);
        return exp2Fast(fmaf(post, kLog2e, -offset));
    }
    return exp2Fast(fmaf(score, p.scale * kLog2e, -offset));
}

/// The gradient of a score q.k * scale; a weight of 0 has none.
template <class Sink>
__device__ __forceinline__ float gradientOf(const FlexAttentionParams& p, const Element& at, float score, float weight,
                                            float dWeight, float delta, Sink&& sink) {
    const float upstream = weight * (dWeight - delta);
    if constexpr (VT_CAPTURE_GRADIENTS != 0) {
        if (weight != 0) {
            captureGradients(score * p.scale, upstream, at.batch, at.head, at.query, at.key, p.scoreCaptures, sink);
        }
    }
    if constexpr (VT_SCORE != 0) {
        const float gradient =
            scoreGradient(score * p.scale, upstream, at.batch, at.head, at.query, at.key, p.scoreCaptures);
        return weight == 0 ? 0.0F : gradient;
    }
    return upstream;
}

/// One element: `score` is q.k and becomes its gradient, `dWeight` is dP and becomes P.
template <class Sink>
__device__ __forceinline__ void differentiate(const FlexAttentionParams& p, const Element& at, bool tested,
                                              bool partial, bool nothing, float offset, float delta, float& score,
                                              float& dWeight, Sink&& sink) {
    float weight = weightOf(p, at, score, offset);
    if (tested) {
        weight = takesPart(p, at, partial, nothing) ? weight : 0.0F;
    }
    score = gradientOf(p, at, score, weight, dWeight, delta, sink);
    dWeight = weight;
}

/// The largest magnitude of a capture gradient's terms, as the bits of a float.
struct LargestTerm {
    unsigned* to;
    float largest[VT_CAPTURE_GRADIENTS + 1] = {};

    __device__ __forceinline__ explicit LargestTerm(const FlexAttentionParams& params) : to(params.captureLargest) {}
    __device__ __forceinline__ void operator()(int gradient, i64, float value) {
        largest[gradient] = fmaxf(largest[gradient], fabsf(value));
    }
    __device__ __forceinline__ void finish() const {
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
