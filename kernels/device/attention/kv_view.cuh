// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// From a logical position of a sequence to its place in the pages of a KV cache. A position that the tables do not hold
// has no place: nothing is read or written there.

#include "device/abi/kv_view.h"
#include "device/lib/types.cuh"

namespace vt {

class KvSequence {
public:
    struct Place {
        i64 page; ///< page number, -1 when there is no such place
        int inPage;
    };

    /// Reads the sequence's row of the tables.
    __device__ __forceinline__ KvSequence(const vitrine::kernels::abi::KvViewParams& view, int sequence)
        : KvSequence(view, view.blockTable + static_cast<i64>(sequence) * view.columns, view.first[sequence],
                     view.lengths[sequence]) {}
    /// Of what was read already; `table` may be a copy in shared memory.
    __device__ __forceinline__ KvSequence(const vitrine::kernels::abi::KvViewParams& view, const int* table, int first,
                                          int length)
        : table_(table), first_(first), end_(first + length), columns_(view.columns), pageTokens_(view.pageTokens),
          pageShift_(view.pageShift) {
        if (view.ring != 0) {
            int pages = 0;
            while (pages < columns_ && table_[pages] >= 0) {
                ++pages;
            }
            capacity_ = pages * pageTokens_;
            columns_ = pages;
        }
    }

    __device__ __forceinline__ int pageTokens() const { return pageTokens_; }
    __device__ __forceinline__ int first() const { return first_; }
    /// One past the last position kept.
    __device__ __forceinline__ int end() const { return end_; }

    __device__ __forceinline__ Place place(int position) const {
        const int at = capacity_ < 0 ? position - first_ : capacity_ == 0 ? -1 : position % capacity_;
        const int column = pageShift_ >= 0 ? at >> pageShift_ : at / pageTokens_;
        if (at < 0 || column >= columns_) {
            return {-1, 0};
        }
        return {table_[column], at - column * pageTokens_};
    }

private:
    const int* table_;
    int first_, end_, columns_, pageTokens_, pageShift_;
    int capacity_ = -1; ///< of a ring
};

/// Where a new token's keys and values go (and, of bytes, the scales of head 0; `pageTokens` between heads), or null
/// where the cache does not keep its position (older than the window, after the end).
template <class T> struct KvRows {
    T* key = nullptr;
    T* value = nullptr;
    float* keyScale = nullptr;
    float* valueScale = nullptr;

    __device__ __forceinline__ KvRows(const vitrine::kernels::abi::KvViewParams& view, int sequence, int position) {
        if (sequence < 0 || sequence >= view.sequences) {
            return;
        }
        const KvSequence kept(view, sequence);
        if (position < kept.first() || position >= kept.end()) {
            return;
        }
        const KvSequence::Place place = kept.place(position);
        if (place.page < 0) {
            return;
        }
        const i64 inPage = static_cast<i64>(place.inPage) * view.tokenStride;
        key = static_cast<T*>(view.keys) + place.page * view.keyPageStride + inPage;
        value = static_cast<T*>(view.values) + place.page * view.valuePageStride + inPage;
        if constexpr (sizeof(T) == 1) {
            keyScale = view.keyScales + place.page * view.keyScaleStride + place.inPage;
            valueScale = view.valueScales + place.page * view.valueScaleStride + place.inPage;
        }
    }
};

} // namespace vt
