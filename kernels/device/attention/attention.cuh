// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Shared by the kernels for single rows: the programs, sinks, LSE. "device/generated/program.cuh" is written for each
// pair of programs (kernels/program/emitter.h): scoreMod, maskMod and intervalRows, which gives the ends of what a row
// sees. VT_SPANS: and maskSpan. VT_MASK: 0 none, 2 an interval of keys for each row, 3 an interval and, in tiles that
// are not seen whole (attention_seen.cuh), maskMod for each key in it. VT_PER_HEAD: the interval depends on the head.
// VT_CAPTURED: the programs read captured tensors, which come with the parameters. Softmax runs in base 2: scores are
// multiplied by log2(e), and LSE is turned back into the natural logarithm.

#include "device/attention/attention_keys.cuh"
#include "device/program/program.cuh"
#ifdef VT_SPANS
#include "device/program/span.cuh"
#endif

namespace vt {

namespace mods {

#include "device/generated/program.cuh"

} // namespace mods

#if VT_CAPTURED
using AttentionCall = vitrine::kernels::abi::AttentionProgramParams;
__device__ __forceinline__ const program::Captures& scoreCaptures(const AttentionCall& p) {
    return p.scoreCaptures;
}
__device__ __forceinline__ const program::Captures& maskCaptures(const AttentionCall& p) {
    return p.maskCaptures;
}
#else
using AttentionCall = AttentionParams;
/// Programs that capture nothing read nothing here.
__device__ __forceinline__ const program::Captures& scoreCaptures(const AttentionCall&) {
    return *static_cast<const program::Captures*>(nullptr);
}
__device__ __forceinline__ const program::Captures& maskCaptures(const AttentionCall&) {
    return *static_cast<const program::Captures*>(nullptr);
}
#endif

inline constexpr float kLog2e = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;

__device__ __forceinline__ float minusInfinity() {
    return __int_as_float(0xFF800000);
}
__device__ __forceinline__ float exp2Fast(float x) {
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
    return out;
}

/// The sequence of a row: the one whose rows begin at or before it and end after it.
__device__ __forceinline__ int sequenceOf(const AttentionParams& p, int row) {
    int low = 0;
    int high = p.cache.sequences - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (p.offsets[middle + 1] > row) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/// First and last key that a row of a head may see, of those that exist.
struct KeyRange {
    int lo, hi;
};
__device__ __forceinline__ KeyRange visibleKeys(const AttentionCall& p, int sequence, int head, int first, int last,
                                                int position) {
    int lo = 0;
    int hi = kNoPosition;
    if constexpr (VT_MASK != 0) {
        mods::intervalRows(sequence, head, position, maskCaptures(p), lo, hi);
    }
    lo = lo > first ? lo : first;
    hi = hi < last ? hi : last;
    return {lo, hi};
}

/// Where a score belongs.
struct ScorePlace {
    int sequence, head, position, key;
};

/// A product q.k as a score in base 2, after the score program; -inf where maskMod is `asked` and forbids it.
__device__ __forceinline__ float score2(const AttentionCall& p, const ScorePlace& at, float product, bool asked) {
    if constexpr (VT_MASK == 3) {
        if (asked && !mods::maskMod(at.sequence, at.head, at.position, at.key, maskCaptures(p))) {
            return minusInfinity();
        }
    }
    if constexpr (VT_SCORE != 0) {
        return kLog2e * mods::scoreMod(product * p.scale, at.sequence, at.head, at.position, at.key, scoreCaptures(p));
    } else {
        return product * p.scale2;
    }
}

#ifdef VT_SINKS_DTYPE
/// The sink of a head in base 2, or -inf.
__device__ __forceinline__ float sink2(const AttentionParams& p, int head) {
    return p.sinks == nullptr ? minusInfinity()
                              : kLog2e * toFloat(static_cast<const StorageOf<VT_SINKS_DTYPE>*>(p.sinks)[head]);
}
#endif

/// What the exponent subtracts: 0 while nothing was seen.
__device__ __forceinline__ float safeMaximum(float maximum) {
    return maximum == minusInfinity() ? 0.0F : maximum;
}
/// Natural LSE of a base-2 maximum and the sum relative to it.
__device__ __forceinline__ float naturalLse(float maximum, float sum) {
    return sum == 0 ? minusInfinity() : (maximum + log2f(sum)) * kLn2;
}

} // namespace vt
