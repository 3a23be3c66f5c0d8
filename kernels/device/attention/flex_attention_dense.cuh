// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the forward pass takes its work from: dense tensors (batch, heads, rows, headDim). Work is a tile of queries of
// one head.

#include "device/attention/flex_attention_tiles.cuh"

namespace vt {

namespace flex {

using Params = FlexAttentionParams;

struct Work {
    int batch, head;
    int begin; ///< first query
};

/// What a row of a tile is (and the one 8 further, `half` 1), and where its results go.
struct RowPlace {
    int batchIndex, headIndex, first;

    __device__ __forceinline__ RowPlace(const Work& work, int row)
        : batchIndex(work.batch), headIndex(work.head), first(work.begin + row) {}
    __device__ __forceinline__ int batch() const { return batchIndex; }
    __device__ __forceinline__ int head(int) const { return headIndex; }
    __device__ __forceinline__ int query(int half) const { return first + half * 8; }
    __device__ __forceinline__ bool inside(const Params& p, int half) const { return query(half) < p.queries; }
    __device__ __forceinline__ static int firstKey(const Params&) { return 0; }
    __device__ __forceinline__ static int lastKey(const Params& p) { return p.keys - 1; }
    __device__ __forceinline__ T* out(const Params& p, int half) const {
        return rowsOf(p.out, batchIndex, headIndex) + query(half) * p.out.rowStride;
    }
    __device__ __forceinline__ i64 lseAt(const Params& p, int half) const {
        return (static_cast<i64>(batchIndex) * p.heads + headIndex) * p.queries + query(half);
    }
};

/// All tiles of an interval.
template <class Walk> __device__ __forceinline__ Walk walkOf(const Params&, const Work&, const Walk& interval) {
    return interval;
}

/// What a block of the portable form reads.
struct Scene {
    Work work;
    const T* keys;
    const T* values;

    __device__ __forceinline__ static bool exists() { return true; }
    template <int kRows, int kThreads> __device__ __forceinline__ void loadQueries(const Params& p, u32 to) const {
        loadRows<kRows, kThreads>(rowsOf(p.q, work.batch, work.head), p.q.rowStride, work.begin, p.queries, to);
    }
    /// Keys and after them values; rows without a key are zeros.
    template <int kKeys, int kThreads>
    __device__ __forceinline__ void loadKeys(const Params& p, int begin, u32 to) const {
        loadRows<kKeys, kThreads>(keys, p.k.rowStride, begin, p.keys, to);
        loadRows<kKeys, kThreads>(values, p.v.rowStride, begin, p.keys, to + kKeys * kPitch);
    }
};

/// The last rows come first, because they see the most in causal masks.
template <int kRows, int kThreads> __device__ __forceinline__ Scene sceneOf(const Params& p) {
    const int batch = static_cast<int>(blockIdx.y) / p.heads;
    const int head = static_cast<int>(blockIdx.y) % p.heads;
    const int kvHead = head / (p.heads / p.kvHeads);
    return {{batch, head, static_cast<int>(gridDim.x - 1 - blockIdx.x) * kRows},
            rowsOf(p.k, batch, kvHead),
            rowsOf(p.v, batch, kvHead)};
}

} // namespace flex

} // namespace vt
