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

    /// Where a position's key and value lie: a slot of a page, a row of the step's own tokens, or nowhere.
    struct Place {
        i64 page; ///< or kNew, kNowhere
        int at;
    };
    __device__ __forceinline__ Place locate(int position) const {
        if (position < first_ || position > last_) {
            return {kNowhere, 0};
        }
        if (position >= newBegin_) {
            return {kNew, newRow_ + position - newBegin_};
        }
        const KvSequence::Slot slot = kept_.slot(position);
        return {slot.page < 0 ? kNowhere : slot.page, slot.inPage};
    }
    /// Elements of kvHead 0 of a key or value, or null where there are none.
    template <class T>
    static __device__ __forceinline__ const T* elements(const AttentionParams& p, const Place& place, bool isValue) {
        const bool isNew = place.page == kNew;
        const void* pool = isValue ? p.cache.values : p.cache.keys;
        const void* added = isValue ? p.newV : p.newK;
        const i64 pageStride = isValue ? p.cache.valuePageStride : p.cache.keyPageStride;
        const i64 stride = isNew ? (isValue ? p.newVStride : p.newKStride) : p.cache.tokenStride;
        const i64 offset = (isNew ? 0 : place.page * pageStride) + place.at * stride;
        return place.page == kNowhere ? nullptr : static_cast<const T*>(isNew ? added : pool) + offset;
    }
    template <class T> __device__ __forceinline__ const T* key(const AttentionParams& p, int position) const {
        return elements<T>(p, locate(position), false);
    }
    template <class T> __device__ __forceinline__ const T* value(const AttentionParams& p, int position) const {
        return elements<T>(p, locate(position), true);
    }
    __device__ __forceinline__ bool isNew(int position) const { return position >= newBegin_; }

private:
    static constexpr int kNowhere = -1;
    static constexpr int kNew = -2;

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
        return p.capOut - __fdividef(2.0F * p.capOut, 1.0F + exp2Fast(product * p.capIn));
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
