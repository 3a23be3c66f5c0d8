// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Softmax of rows of logits, a block a row: the maximum and the sums in one pass, the gradient of the logits in a
// second. That begins where the first one ended, so that it finds the end of the row in the second-level cache. `Value`
// is what becomes of a logit x before the softmax: CappedLogit or ScaledLogit. VT_VECTOR, VT_ROW_THREADS and VT_CAPPED
// are macros of the call.

#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

namespace loss {

inline constexpr int kPieces = VT_VECTOR == 8 ? 2 : 8; ///< of a thread, under way at once
inline constexpr int kThreadStep = VT_ROW_THREADS * VT_VECTOR;
inline constexpr int kStep = kPieces * kThreadStep;
inline constexpr float kLowest = -3.402823466e+38F; ///< finite, so that logits of -infinity give 0 and not NaN
inline constexpr float kNothing = -104.0F;          ///< its exponential and those of all below are 0

/// y = cap tanh(x / cap), or x.
struct CappedLogit {
    float cap;

    __device__ __forceinline__ float operator()(float x) const { return VT_CAPPED ? cap * tanhf(x / cap) : x; }
    /// dy/dx, from y.
    __device__ __forceinline__ float slope(float y) const {
        const float tangent = y / cap;
        return 1.0F - tangent * tangent;
    }
};

/// y = scale tanh(x / cap), or scale x.
struct ScaledLogit {
    float cap, scale;

    __device__ __forceinline__ float operator()(float x) const { return scale * (VT_CAPPED ? tanhf(x / cap) : x); }
    /// As CappedLogit's, without the inverse temperature.
    __device__ __forceinline__ float slope(float y) const {
        const float tangent = y / scale;
        return 1.0F - tangent * tangent;
    }
};

/// sum is that of exp(y - best).
struct Sums {
    float best, sum;

    static __device__ __forceinline__ Sums none() { return {kLowest, 0.0F}; }
    __device__ __forceinline__ void add(float y) { sum += __expf(y - best); }
    /// As if the best were this one, which is not below it.
    __device__ __forceinline__ Sums at(float to) const { return {to, sum * __expf(best - to)}; }
    __device__ __forceinline__ Sums plus(const Sums& other) const { return {best, sum + other.sum}; }
    __device__ __forceinline__ Sums ofLane(int offset) const {
        return {__shfl_xor_sync(kAllLanes, best, offset), __shfl_xor_sync(kAllLanes, sum, offset)};
    }
};

/// product is the sum of exp(y - best) (y - best).
struct EntropySums {
    float best, sum, product;

    static __device__ __forceinline__ EntropySums none() { return {kLowest, 0.0F, 0.0F}; }
    __device__ __forceinline__ void add(float y) {
        const float term = __expf(y - best);
        sum += term;
        product += term * fmaxf(y - best, kNothing); // -infinity adds 0
    }
    __device__ __forceinline__ EntropySums at(float to) const {
        const float factor = __expf(best - to);
        return {to, sum * factor, (product + sum * fmaxf(best - to, kNothing)) * factor};
    }
    __device__ __forceinline__ EntropySums plus(const EntropySums& other) const {
        return {best, sum + other.sum, product + other.product};
    }
    __device__ __forceinline__ EntropySums ofLane(int offset) const {
        return {__shfl_xor_sync(kAllLanes, best, offset), __shfl_xor_sync(kAllLanes, sum, offset),
                __shfl_xor_sync(kAllLanes, product, offset)};
    }
};

template <class S> __device__ __forceinline__ S merged(const S& a, const S& b) {
    const float best = fmaxf(a.best, b.best);
    return a.at(best).plus(b.at(best));
}

template <class S> __device__ __forceinline__ S warpMerged(S x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x = merged(x, x.ofLane(offset));
    }
    return x;
}

/// Every thread gets the result.
template <class S> __device__ __forceinline__ S blockMerged(S x) {
    __shared__ S slots[VT_ROW_THREADS / 32];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    x = warpMerged(x);
    if (lane == 0) {
        slots[threadIdx.x / 32] = x;
    }
    __syncthreads();
    return warpMerged(lane < VT_ROW_THREADS / 32 ? slots[lane] : S::none());
}

/// This thread's values in the step that begins at `base`.
template <class X, class Value>
__device__ __forceinline__ void loadStep(const X* logits, int base, int vocab, const Value& valueOf,
                                         float (&y)[kPieces][VT_VECTOR]) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
        const int at = base + i * kThreadStep + static_cast<int>(threadIdx.x) * VT_VECTOR;
        if (at < vocab) {
            loadPiece(logits + at, y[i]);
#pragma unroll
            for (float& value : y[i]) {
                value = valueOf(value);
            }
        } else {
#pragma unroll
            for (float& value : y[i]) {
                value = kLowest;
            }
        }
    }
}

/// `S` is Sums or EntropySums.
template <class S, class X, class Value>
__device__ __forceinline__ S sumsOfRow(const X* logits, int vocab, const Value& valueOf) {
    S all = S::none();
    for (int base = 0; base < vocab; base += kStep) {
        float y[kPieces][VT_VECTOR];
        loadStep(logits, base, vocab, valueOf, y);
        S step = S::none();
        step.best = all.best;
#pragma unroll
        for (const auto& piece : y) {
#pragma unroll
            for (const float value : piece) {
                step.best = fmaxf(step.best, value);
            }
        }
#pragma unroll
        for (int i = 0; i < kPieces; ++i) {
            if (base + i * kThreadStep + static_cast<int>(threadIdx.x) * VT_VECTOR < vocab) {
#pragma unroll
                for (const float value : y[i]) {
                    step.add(value);
                }
            }
        }
        all = all.at(step.best).plus(step);
    }
    return blockMerged(all);
}

/// A row's gradient: (exp(y - best) share - scale onehot(target)) dy/dx. share is scale / sum; where best is the
/// logarithm of the sum of all exponentials, it is scale, and both have the inverse temperature in them.
template <class Value> struct Gradient {
    float best, share, scale;
    Value valueOf;
    int target;

    template <class Out> __device__ __forceinline__ void store(const float (&y)[VT_VECTOR], int at, Out* out) const {
        float values[VT_VECTOR];
#pragma unroll
        for (int i = 0; i < VT_VECTOR; ++i) {
            values[i] = __expf(y[i] - best) * share - (at + i == target ? scale : 0.0F);
            if constexpr (VT_CAPPED) {
                values[i] *= valueOf.slope(y[i]);
            }
        }
        storePiece(values, out + at);
    }
};

/// kNarrower: rows of a narrower dtype take the place of the logits.
template <bool kNarrower, class X, class Value, class Out>
__device__ __forceinline__ void writeGradient(const X* logits, int vocab, const Gradient<Value>& gradient, Out* out) {
    const int steps = ceilDiv(vocab, kStep);
    for (int i = 0; i < steps; ++i) {
        // Narrower rows in the place of the logits have to ascend behind what all threads have read.
        const int base = (kNarrower ? i : steps - 1 - i) * kStep;
        float y[kPieces][VT_VECTOR];
        loadStep(logits, base, vocab, gradient.valueOf, y);
        if constexpr (kNarrower) {
            __syncthreads();
        }
#pragma unroll
        for (int j = 0; j < kPieces; ++j) {
            const int at = base + j * kThreadStep + static_cast<int>(threadIdx.x) * VT_VECTOR;
            if (at < vocab) {
                gradient.store(y[j], at, out);
            }
        }
    }
}

template <class Out> __device__ __forceinline__ void writeZeros(int vocab, Out* out) {
    const float zeros[VT_VECTOR] = {};
    for (int at = static_cast<int>(threadIdx.x) * VT_VECTOR; at < vocab; at += kThreadStep) {
        storePiece(zeros, out + at);
    }
}

} // namespace loss

} // namespace vt
