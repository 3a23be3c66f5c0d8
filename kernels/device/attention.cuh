// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the attention kernels share: which keys a sequence has and where they lie, which of them a row sees, the scores.
// Softmax runs in base 2: a score is multiplied by log2(e), and LSE is turned back into the natural logarithm.

#include "device/abi/attention.h"
#include "device/kv_view.cuh"
#include "device/types.cuh"

namespace vt {

using vitrine::kernels::abi::AttentionParams;

inline constexpr float kLog2e = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;
inline constexpr int kNoPosition = 0x7FFFFFFF;

__device__ __forceinline__ float minusInfinity() {
    return __int_as_float(0xFF800000);
}
__device__ __forceinline__ float exp2Fast(float x) {
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
    return out;
}

/// The keys of one sequence: those that the cache keeps and, beside it, the step's own.
class SequenceKeys {
public:
    /// `row` is the first of the sequence's rows, which end before `rowEnd`.
    __device__ __forceinline__ SequenceKeys(const AttentionParams& p, int sequence, int row, int rowEnd)
        : SequenceKeys(p, KvSequence(p.cache, sequence), row, rowEnd, p.positions[row]) {}
    /// `position` is the first row's.
    __device__ __forceinline__ SequenceKeys(const AttentionParams& p, const KvSequence& kept, int row, int rowEnd,
                                            int position)
        : kept_(kept), first_(kept.first()), last_(kept.end() - 1) {
        if (p.newK != nullptr) {
            newRow_ = row;
            newBegin_ = position;
            last_ = newBegin_ + (rowEnd - row) - 1;
            first_ = first_ < newBegin_ ? first_ : newBegin_;
        }
    }

    __device__ __forceinline__ int first() const { return first_; }
    __device__ __forceinline__ int last() const { return last_; }

    /// Elements of `position`, kvHead 0, or null where there are none.
    template <class T> __device__ __forceinline__ const T* key(const AttentionParams& p, int position) const {
        return place<T>(p.cache.keys, p.cache.keyPageStride, p.cache.tokenStride, p.newK, p.newKStride, position);
    }
    template <class T> __device__ __forceinline__ const T* value(const AttentionParams& p, int position) const {
        return place<T>(p.cache.values, p.cache.valuePageStride, p.cache.tokenStride, p.newV, p.newVStride, position);
    }
    __device__ __forceinline__ bool isNew(int position) const { return position >= newBegin_; }

private:
    template <class T>
    __device__ __forceinline__ const T* place(const void* pool, i64 pageStride, int tokenStride, const void* added,
                                              i64 addedStride, int position) const {
        if (position < first_ || position > last_) {
            return nullptr;
        }
        if (position >= newBegin_) {
            return static_cast<const T*>(added) + (newRow_ + position - newBegin_) * addedStride;
        }
        const KvSequence::Slot slot = kept_.slot(position);
        if (slot.page < 0) {
            return nullptr;
        }
        return static_cast<const T*>(pool) + slot.page * pageStride + static_cast<i64>(slot.inPage) * tokenStride;
    }

    KvSequence kept_;
    int first_, last_;
    int newRow_ = 0;
    int newBegin_ = kNoPosition;
};

/// First and last key that a row at `position` may see, of those that exist.
struct KeyRange {
    int lo, hi;
};
__device__ __forceinline__ KeyRange visibleKeys(const AttentionParams& p, int first, int last, int position) {
    int lo = p.window == kNoPosition ? 0 : position - p.window + 1;
    int hi = p.causal != 0 ? position : last;
    lo = lo > first ? lo : first;
    hi = hi < last ? hi : last;
    return {lo, hi};
}

/// A product q.k as a score in base 2. The soft cap, cap * tanh(x / cap), has an absolute error of about 1e-7 cap.
template <bool kSoftCap> __device__ __forceinline__ float score2(const AttentionParams& p, float product) {
    if constexpr (kSoftCap) {
        const float e = exp2Fast(product * (2.0F * kLog2e * p.scale / p.softCap));
        return kLog2e * p.softCap * (1.0F - __fdividef(2.0F, 1.0F + e));
    } else {
        return product * (p.scale * kLog2e);
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
