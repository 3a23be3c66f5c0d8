// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FlexAttention in float32, without tensor cores: a warp owns kOwn rows and walks tiles of kTile others. Each lane
// makes the scores of one row of the tile; then each lane adds up its elements of the results. VT_PASS 0: forward, rows
// are queries; 1: backward, rows are queries and the result is dq; 2: rows are keys and the results are dk and dv.

#include "device/attention/flex_attention_terms.cuh"

namespace vt {

namespace flex {

inline constexpr int kWarpCount = 8;
inline constexpr int kOwn = 2; ///< rows of a warp
inline constexpr int kBlockRows = kWarpCount * kOwn;
inline constexpr int kTile = 32;                ///< a row for each lane
inline constexpr int kRowPitch = kDim + 1;      ///< floats between rows of a tile: no bank conflicts
inline constexpr int kParts = (kDim + 31) / 32; ///< elements of a row that a lane adds up
inline constexpr bool kForKeys = VT_PASS == 2;

/// Rows [begin, begin + kRows) into shared memory; rows from `end` on are zeros.
template <int kRows>
__device__ __forceinline__ void copyRows(const T* from, i64 stride, int begin, int end, float* to) {
    static_assert(kRows * kDim % (kWarpCount * 32) == 0, "every thread copies as many elements");
#pragma unroll 2
    for (int step = 0; step < kRows * kDim / (kWarpCount * 32); ++step) {
        const int i = step * kWarpCount * 32 + static_cast<int>(threadIdx.x);
        const int row = i / kDim;
        to[row * kRowPitch + i % kDim] = begin + row < end ? from[(begin + row) * stride + i % kDim] : 0.0F;
    }
}

__device__ __forceinline__ float dotRows(const float* a, const float* b) {
    float sum = 0;
#pragma unroll 4
    for (int d = 0; d < kDim; ++d) {
        sum = fmaf(a[d], b[d], sum);
    }
    return sum;
}

/// sums += factors of the tile's rows times the rows; each lane has the factor of one.
__device__ __forceinline__ void addRows(float (&sums)[kParts], float factor, const float* tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
    for (int row = 0; row < kTile; ++row) {
        const float one = __shfl_sync(kAllLanes, factor, row);
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            const int d = part * 32 + lane;
            if (kDim % 32 == 0 || d < kDim) {
                sums[part] = fmaf(one, tile[row * kRowPitch + d], sums[part]);
            }
        }
    }
}

__device__ __forceinline__ void storeRow(const float (&sums)[kParts], T* to, float factor) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
        const int d = part * 32 + lane;
        if (kDim % 32 == 0 || d < kDim) {
            to[d] = sums[part] * factor;
        }
    }
}

#if VT_MASK == 1
using TileWalk = RunWalk<kTile>;
#else
using TileWalk = IntervalWalk<kTile>;
#endif

/// The tiles that the rows from `begin` on see, or are seen by.
__device__ __forceinline__ TileWalk openWalk(const FlexAttentionParams& p, int batch, int head, int begin) {
#if VT_MASK == 1
    if constexpr (kForKeys) {
        return walkColumn<kTile>(p, batch, head, begin);
    } else {
        return walkRow<kTile>(p, batch, head, begin);
    }
#else
    const int last = (kForKeys ? p.queries : p.keys) - 1;
    return TileWalk(0, last, 0, last);
#endif
}

/// What a block has in shared memory: two tensors of its rows, two of a tile.
struct RowTiles {
    float* own;       ///< queries, or keys
    float* ownOther;  ///< upstream gradients, or values
    float* tile;      ///< keys, or queries
    float* tileOther; ///< values, or upstream gradients
};

/// Adds what one head's tiles give to the sums of the warp's rows.
template <class Sink>
__device__ __forceinline__ void walkHead(const FlexAttentionParams& p, int batch, int head, int begin,
                                         const RowTiles& at, float (&sums)[kOwn][kParts], float (&others)[kOwn][kParts],
                                         Sink& sink) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int kvHead = head / (p.heads / p.kvHeads);
    const i64 rowBase = (static_cast<i64>(batch) * p.heads + head) * p.paddedQueries;
    for (TileWalk walk = openWalk(p, batch, head, begin); !walk.done();) {
        const int tileBegin = walk.begin();
        const bool partial = walk.partial();
        walk.next();
        __syncthreads(); // all warps are done with the tile before
        if constexpr (kForKeys) {
            copyRows<kTile>(rowsOf(p.q, batch, head), p.q.rowStride, tileBegin, p.queries, at.tile);
            copyRows<kTile>(rowsOf(p.gradOut, batch, head), p.gradOut.rowStride, tileBegin, p.queries, at.tileOther);
        } else {
            copyRows<kTile>(rowsOf(p.k, batch, kvHead), p.k.rowStride, tileBegin, p.keys, at.tile);
            copyRows<kTile>(rowsOf(p.v, batch, kvHead), p.v.rowStride, tileBegin, p.keys, at.tileOther);
        }
        __syncthreads();
#pragma unroll
        for (int own = 0; own < kOwn; ++own) {
            const int row = warp * kOwn + own;
            const Element element{batch, head, kForKeys ? tileBegin + lane : begin + row,
                                  kForKeys ? begin + row : tileBegin + lane};
            float score = dotRows(at.own + row * kRowPitch, at.tile + lane * kRowPitch);
            float weight = dotRows(at.ownOther + row * kRowPitch, at.tileOther + lane * kRowPitch);
            const bool nothing = element.query >= p.queries;
            const i64 place = rowBase + (nothing ? 0 : element.query);
            differentiate(p, element, true, partial, nothing, p.offsets[place], p.delta[place], score, weight, sink);
            addRows(sums[own], score, at.tile);
            if constexpr (kForKeys) {
                addRows(others[own], weight, at.tileOther);
            }
        }
        if constexpr (kForKeys) {
            sink.endTile();
        }
    }
}

/// One query on its way: maximum (base 2), sum of the weights, weighted values.
struct RunningRow {
    float best = minusInfinity();
    float total = 0;
    float sums[kParts] = {};

    /// `score` (base 2) is that of this lane's key; -inf: it takes no part.
    __device__ __forceinline__ void add(float score, const float* values) {
        const float next = fmaxf(best, warpMax(score));
        const float base = next == minusInfinity() ? 0.0F : next;
        const float shrink = exp2Fast(best - base);
        const float weight = exp2Fast(score - base);
        total = fmaf(total, shrink, warpSum(weight));
#pragma unroll
        for (float& sum : sums) {
            sum *= shrink;
        }
        addRows(sums, weight, values);
        best = next;
    }
};

/// The score of an element that takes part, in base 2.
__device__ __forceinline__ float scoreOf(const FlexAttentionParams& p, const Element& at, float product) {
    if constexpr (VT_SCORE != 0) {
        return scoreMod(product * p.scale, at.batch, at.head, at.query, at.key, p.scoreCaptures) * kLog2e;
    }
    return product * (p.scale * kLog2e);
}

/// Result and LSE of a query; the sink is one more logit without a value.
__device__ __forceinline__ void storeForward(const FlexAttentionParams& p, int batch, int head, int query,
                                             const RunningRow& row) {
    float sink = minusInfinity();
    if (p.sinks != nullptr) {
        sink = toFloat(static_cast<const StorageOf<VT_SINKS_DTYPE>*>(p.sinks)[head]) * kLog2e;
    }
    const float best = fmaxf(row.best, sink);
    const float base = best == minusInfinity() ? 0.0F : best;
    const float share = exp2Fast(row.best - base);
    const float total = fmaf(row.total, share, exp2Fast(sink - base));
    storeRow(row.sums, rowsOf(p.out, batch, head) + query * p.out.rowStride, total == 0 ? 0.0F : share / total);
    if (p.lse != nullptr && threadIdx.x % 32 == 0) {
        p.lse[(static_cast<i64>(batch) * p.heads + head) * p.queries + query] =
            total == 0 ? minusInfinity() : (base + log2f(total)) * kLn2;
    }
}

/// The forward pass of the block's queries from `begin` on.
__device__ __forceinline__ void attendRows(const FlexAttentionParams& p, int batch, int head, int begin,
                                           const RowTiles& at) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int kvHead = head / (p.heads / p.kvHeads);
    RunningRow rows[kOwn];
    copyRows<kBlockRows>(rowsOf(p.q, batch, head), p.q.rowStride, begin, p.queries, at.own);
    for (TileWalk walk = openWalk(p, batch, head, begin); !walk.done();) {
        const int tileBegin = walk.begin();
        const bool partial = walk.partial();
        walk.next();
        __syncthreads(); // all warps are done with the tile before
        copyRows<kTile>(rowsOf(p.k, batch, kvHead), p.k.rowStride, tileBegin, p.keys, at.tile);
        copyRows<kTile>(rowsOf(p.v, batch, kvHead), p.v.rowStride, tileBegin, p.keys, at.tileOther);
        __syncthreads();
#pragma unroll
        for (int own = 0; own < kOwn; ++own) {
            const int row = warp * kOwn + own;
            const Element element{batch, head, begin + row, tileBegin + lane};
            const float score = scoreOf(p, element, dotRows(at.own + row * kRowPitch, at.tile + lane * kRowPitch));
            rows[own].add(takesPart(p, element, partial, false) ? score : minusInfinity(), at.tileOther);
        }
    }
#pragma unroll
    for (int own = 0; own < kOwn; ++own) {
        const int query = begin + warp * kOwn + own;
        if (query < p.queries) {
            storeForward(p, batch, head, query, rows[own]);
        }
    }
}

} // namespace flex

extern "C" __global__ void __launch_bounds__(flex::kWarpCount * 32)
    flex_attention_rows(const __grid_constant__ FlexAttentionParams p) {
    using namespace flex;
    extern __shared__ float shared[];
    pdl::wait();
    pdl::launchDependents();
    const int begin = static_cast<int>(blockIdx.x) * kBlockRows;
    const int ownHeads = kForKeys ? p.kvHeads : p.heads;
    const int batch = static_cast<int>(blockIdx.y) / ownHeads;
    const int ownHead = static_cast<int>(blockIdx.y) % ownHeads;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const RowTiles at{shared, shared + kBlockRows * kRowPitch, shared + 2 * kBlockRows * kRowPitch,
                      shared + (2 * kBlockRows + kTile) * kRowPitch};
    if constexpr (VT_PASS == 0) {
        attendRows(p, batch, ownHead, begin, at);
        return;
    }
    float sums[kOwn][kParts] = {};
    float others[kOwn][kParts] = {};
    if constexpr (kForKeys) {
        copyRows<kBlockRows>(rowsOf(p.k, batch, ownHead), p.k.rowStride, begin, p.keys, at.own);
        copyRows<kBlockRows>(rowsOf(p.v, batch, ownHead), p.v.rowStride, begin, p.keys, at.ownOther);
        TermSums terms(p);
        const int group = p.heads / p.kvHeads;
        for (int head = ownHead * group; head < (ownHead + 1) * group; ++head) {
            walkHead(p, batch, head, begin, at, sums, others, terms);
        }
        if constexpr (VT_CAPTURE_GRADIENTS != 0) {
            terms.finish();
        }
    } else {
        copyRows<kBlockRows>(rowsOf(p.q, batch, ownHead), p.q.rowStride, begin, p.queries, at.own);
        copyRows<kBlockRows>(rowsOf(p.gradOut, batch, ownHead), p.gradOut.rowStride, begin, p.queries, at.ownOther);
        LargestTerm largest(p);
        walkHead(p, batch, ownHead, begin, at, sums, others, largest);
        if constexpr (VT_CAPTURE_GRADIENTS != 0) {
            largest.finish();
        }
    }
#pragma unroll
    for (int own = 0; own < kOwn; ++own) {
        const int row = begin + warp * kOwn + own;
        if constexpr (kForKeys) {
            if (row < p.keys) {
                storeRow(sums[own], rowsOf(p.dk, batch, ownHead) + row * p.dk.rowStride, p.scale);
                storeRow(others[own], rowsOf(p.dv, batch, ownHead) + row * p.dv.rowStride, 1.0F);
            }
        } else if (row < p.queries) {
            storeRow(sums[own], rowsOf(p.dq, batch, ownHead) + row * p.dq.rowStride, p.scale);
        }
    }
}

} // namespace vt
