// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which keys a sequence of a ragged batch has, and where they lie: in pages of the cache or beside it.

#include "device/abi/attention.h"
#include "device/attention/kv_bytes.cuh"
#include "device/attention/kv_view.cuh"
#include "device/lib/types.cuh"

namespace vt {

using vitrine::kernels::abi::AttentionParams;

inline constexpr int kNoPosition = 0x7FFFFFFF;

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
    __device__ __forceinline__ const KvSequence& kept() const { return kept_; }

    /// Where a position's key and value lie: a place of a page, a row of the step's own tokens, or nowhere.
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
        return locateKept(position);
    }
    /// The same among the pages alone: those of a cache that is no ring hold the step's own tokens too.
    __device__ __forceinline__ Place locateKept(int position) const {
        if (position < first_ || position > last_) {
            return {kNowhere, 0};
        }
        const KvSequence::Place place = kept_.place(position);
        return {place.page < 0 ? kNowhere : place.page, place.inPage};
    }
    /// The place of the first of 16 positions that lie next to one another in a page; nowhere if they do not, all of
    /// them.
    __device__ __forceinline__ Place locateRun(int position) const {
        if (position < first_ || position + 15 > last_ || position + 15 >= newBegin_ || kept_.pageTokens() % 16 != 0) {
            return nowhere();
        }
        const KvSequence::Place place = kept_.place(position);
        return place.page < 0 || place.inPage % 16 != 0 ? nowhere() : Place{place.page, place.inPage};
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
    /// Of a cache in bytes: a head's scale of a place in a page, or null elsewhere.
    static __device__ __forceinline__ const float* scale(const AttentionParams& p, const Place& place, bool isValue,
                                                         int kvHead) {
        const float* pool = isValue ? p.cache.valueScales : p.cache.keyScales;
        const i64 pageStride = isValue ? p.cache.valueScaleStride : p.cache.keyScaleStride;
        return place.page < 0 ? nullptr : pool + place.page * pageStride + kvHead * p.cache.pageTokens + place.at;
    }
    static __device__ __forceinline__ bool isNew(const Place& place) { return place.page == kNew; }
    static __device__ __forceinline__ bool isInPage(const Place& place) { return place.page >= 0; }
    static __device__ __forceinline__ Place nowhere() { return {kNowhere, 0}; }
    /// What a key's or value's elements are to be multiplied by: floats by 1.
    template <class T>
    __device__ __forceinline__ float scaleOf(const AttentionParams& p, int position, bool isValue, int kvHead) const {
        if constexpr (sizeof(T) == 1) {
            return *scale(p, locate(position), isValue, kvHead);
        } else {
            return 1;
        }
    }
    template <class T> __device__ __forceinline__ const T* key(const AttentionParams& p, int position) const {
        return elements<T>(p, locate(position), false);
    }
    template <class T> __device__ __forceinline__ const T* value(const AttentionParams& p, int position) const {
        return elements<T>(p, locate(position), true);
    }
    /// Row of newK and newV that belongs to a position from there on; after the sequence's end another one's, or none.
    __device__ __forceinline__ int newRow(int position) const { return newRow_ + position - newBegin_; }
    __device__ __forceinline__ bool isNew(int position) const { return position >= newBegin_; }

private:
    static constexpr int kNowhere = -1;
    static constexpr int kNew = -2;

    KvSequence kept_;
    int first_, last_;
    int newRow_ = 0;
    int newBegin_ = kNoPosition;
};

} // namespace vt
