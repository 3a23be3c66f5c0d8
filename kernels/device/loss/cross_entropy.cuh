// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Cross-entropy of rows of logits, a block a row: one pass for the maximum and the sum, one for the gradient. The
// second pass begins where the first one ended, so that it finds the end of the row in the second-level cache.
// VT_GRADIENT 0: losses only; 1: with the gradient; 2: its dtype is narrower than that of the logits, whose memory it
// takes.

#include "device/abi/cross_entropy.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

namespace loss {

inline constexpr int kPieces = VT_VECTOR == 8 ? 2 : 8; ///< of a thread, under way at once
inline constexpr int kThreadStep = VT_ROW_THREADS * VT_VECTOR;
inline constexpr int kStep = kPieces * kThreadStep;
inline constexpr float kLowest = -3.402823466e+38F; ///< finite, so that logits of -infinity give 0 and not NaN

/// sum is that of exp(y - best).
struct Sums {
    float best, sum;
};

__device__ __forceinline__ Sums merged(const Sums& a, const Sums& b) {
    const float best = fmaxf(a.best, b.best);
    return {best, a.sum * __expf(a.best - best) + b.sum * __expf(b.best - best)};
}

__device__ __forceinline__ Sums warpMerged(Sums x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x = merged(x, {__shfl_xor_sync(kAllLanes, x.best, offset), __shfl_xor_sync(kAllLanes, x.sum, offset)});
    }
    return x;
}

/// Every thread gets the result.
__device__ __forceinline__ Sums blockMerged(Sums x) {
    __shared__ Sums slots[VT_ROW_THREADS / 32];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    x = warpMerged(x);
    if (lane == 0) {
        slots[threadIdx.x / 32] = x;
    }
    __syncthreads();
    return warpMerged(lane < VT_ROW_THREADS / 32 ? slots[lane] : Sums{kLowest, 0.0F});
}

__device__ __forceinline__ float capped(float x, float cap) {
    return VT_CAPPED ? cap * tanhf(x / cap) : x;
}

/// This thread's pieces of the step that begins at `base`, capped.
template <class X>
__device__ __forceinline__ void loadStep(const X* logits, int base, int vocab, float cap,
                                         float (&y)[kPieces][VT_VECTOR]) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
        const int at = base + i * kThreadStep + static_cast<int>(threadIdx.x) * VT_VECTOR;
        if (at < vocab) {
            loadPiece(logits + at, y[i]);
#pragma unroll
            for (float& value : y[i]) {
                value = capped(value, cap);
            }
        } else {
#pragma unroll
            for (float& value : y[i]) {
                value = kLowest;
            }
        }
    }
}

template <class X> __device__ __forceinline__ Sums sumsOfRow(const X* logits, int vocab, float cap) {
    Sums all{kLowest, 0.0F};
    for (int base = 0; base < vocab; base += kStep) {
        float y[kPieces][VT_VECTOR];
        loadStep(logits, base, vocab, cap, y);
        Sums step{all.best, 0.0F};
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
                    step.sum += __expf(value - step.best);
                }
            }
        }
        all = {step.best, all.sum * __expf(all.best - step.best) + step.sum};
    }
    return blockMerged(all);
}

/// What a row's gradient needs; share is scale / sum.
struct Gradient {
    float best, share, scale, cap;
    int target;

    template <class Out> __device__ __forceinline__ void store(const float (&y)[VT_VECTOR], int at, Out* out) const {
        float values[VT_VECTOR];
#pragma unroll
        for (int i = 0; i < VT_VECTOR; ++i) {
            values[i] = __expf(y[i] - best) * share - (at + i == target ? scale : 0.0F);
            if constexpr (VT_CAPPED) {
                const float tangent = y[i] / cap;
                values[i] *= 1.0F - tangent * tangent;
            }
        }
        storePiece(values, out + at);
    }
};

template <class X, class Out>
__device__ __forceinline__ void writeGradient(const X* logits, int vocab, const Gradient& gradient, Out* out) {
    const int steps = ceilDiv(vocab, kStep);
    for (int i = 0; i < steps; ++i) {
        // Narrower rows in the place of the logits have to ascend behind what all threads have read.
        const int base = (VT_GRADIENT == 2 ? i : steps - 1 - i) * kStep;
        float y[kPieces][VT_VECTOR];
        loadStep(logits, base, vocab, gradient.cap, y);
        if constexpr (VT_GRADIENT == 2) {
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

extern "C" __global__ void __launch_bounds__(VT_ROW_THREADS)
    cross_entropy(const __grid_constant__ vitrine::kernels::abi::CrossEntropyParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    using Out = StorageOf<VT_GRAD_DTYPE>;
    const i64 row = blockIdx.x;
    const X* logits = static_cast<const X*>(p.logits) + row * p.logitsStride;
    Out* out = static_cast<Out*>(p.gradLogits) + (VT_GRADIENT ? row * p.gradStride : 0);
    pdl::wait();
    pdl::launchDependents();
    const int target = p.targets[row];
    if (target < 0) {
        if (threadIdx.x == 0) {
            p.losses[row] = 0.0F;
        }
        if constexpr (VT_GRADIENT) {
            loss::writeZeros(p.vocab, out);
        }
        return;
    }
    // Hosts check targets; a wrong one that comes from the device must show and must not read elsewhere.
    const float nan = __int_as_float(0x7FC00000);
    const float atTarget = target < p.vocab ? loss::capped(toFloat(logits[target]), p.softCap) : nan;
    const loss::Sums sums = loss::sumsOfRow(logits, p.vocab, p.softCap);
    if (threadIdx.x == 0) {
        p.losses[row] = logf(sums.sum) + sums.best - atTarget;
    }
    if constexpr (VT_GRADIENT) {
        const float share = target < p.vocab ? p.gradScale / sums.sum : nan;
        loss::writeGradient(logits, p.vocab, loss::Gradient{sums.best, share, p.gradScale, p.softCap, target}, out);
    }
}

} // namespace vt
