// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Attention without tensor cores: any dtypes, any head dim up to 1024. A block takes one (row, head); its warps take
// blocks of 32 keys in turn, a lane a key for the scores and a slice of the head dim for the values. Keys are cut at
// multiples of 32 and merged in the order of the warps, so that a row's result depends on nothing else in the batch.

#include "device/attention/attention.cuh"
#include "device/attention/attention_seen.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"

namespace vt {

namespace simt {

using Q = StorageOf<VT_Q_DTYPE>;
using Cache = StorageOf<VT_CACHE_DTYPE>;
using New = StorageOf<VT_NEW_DTYPE>;
using Out = StorageOf<VT_OUT_DTYPE>;
inline constexpr int kDim = VT_HEAD_DIM;
inline constexpr int kWarps = 8;
inline constexpr int kPerLane = ceilDiv(kDim, 32);

template <class T> __device__ __forceinline__ float dot(const float* q, const T* key) {
    float sum = 0;
#pragma unroll 4
    for (int d = 0; d < kDim; d += VT_VECTOR) {
        float piece[VT_VECTOR];
        loadPiece(key + d, piece);
#pragma unroll
        for (int i = 0; i < VT_VECTOR; ++i) {
            sum += q[d + i] * piece[i];
        }
    }
    return sum;
}

template <class T> __device__ __forceinline__ void addScaled(float weight, const T* value, float (&sums)[kPerLane]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        const int d = i * 32 + lane;
        if (d < kDim) {
            sums[i] += weight * toFloat(value[d]);
        }
    }
}

/// A key's score in base 2, -inf where a table names no page.
template <class T>
__device__ __forceinline__ float scoreOf(const AttentionCall& p, const SequenceKeys& keys, const ScorePlace& at,
                                         bool asked, i64 headAt, const float* q) {
    const T* key = keys.key<T>(p, at.key);
    if (key == nullptr) {
        return minusInfinity();
    }
    return score2(p, at, dot(q, key + headAt) * keys.scaleOf<T>(p, at.key, false, static_cast<int>(headAt / kDim)),
                  asked);
}

template <class T>
__device__ __forceinline__ void addValue(const AttentionParams& p, const SequenceKeys& keys, int position, i64 headAt,
                                         float weight, float (&sums)[kPerLane]) {
    const T* value = keys.value<T>(p, position);
    if (value != nullptr) {
        const float scale = keys.scaleOf<T>(p, position, true, static_cast<int>(headAt / kDim));
        addScaled(weight * scale, value + headAt, sums);
    }
}

/// Adds up what the warps of a block saw, each with its own maximum, and writes the row of one head.
__device__ __forceinline__ void writeRow(const AttentionParams& p, int row, int head, float maximum, float total,
                                         const float (&sums)[kPerLane]) {
    __shared__ float merged[kWarps][kDim];
    __shared__ float maxima[kWarps];
    __shared__ float totals[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        if (i * 32 + lane < kDim) {
            merged[warp][i * 32 + lane] = sums[i];
        }
    }
    if (lane == 0) {
        maxima[warp] = maximum;
        totals[warp] = total;
    }
    __syncthreads();
    const float sink = sink2(p, head);
    maximum = sink;
    for (const float other : maxima) {
        maximum = fmaxf(maximum, other);
    }
    total = exp2f(sink - safeMaximum(maximum));
    for (int i = 0; i < kWarps; ++i) {
        total += totals[i] * exp2f(maxima[i] - safeMaximum(maximum));
    }
    for (int d = static_cast<int>(threadIdx.x); d < kDim; d += 32 * kWarps) {
        float sum = 0;
        for (int i = 0; i < kWarps; ++i) {
            sum += merged[i][d] * exp2f(maxima[i] - safeMaximum(maximum));
        }
        const float value = total == 0 ? 0.0F : sum / total;
        static_cast<Out*>(p.out)[row * p.outStride + static_cast<i64>(head) * kDim + d] = fromFloat<Out>(value);
    }
    if (p.lse != nullptr && threadIdx.x == 0) {
        p.lse[static_cast<i64>(head) * p.tokens + row] = naturalLse(maximum, total);
    }
}

} // namespace simt

extern "C" __global__ void __launch_bounds__(256, 2) attention_simt(const __grid_constant__ AttentionCall p) {
    using namespace simt;
    __shared__ float q[kDim];
    const int head = static_cast<int>(blockIdx.x % static_cast<unsigned>(p.heads));
    const int row = static_cast<int>(blockIdx.x / static_cast<unsigned>(p.heads));
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    pdl::wait();
    pdl::launchDependents();
    for (int d = static_cast<int>(threadIdx.x); d < kDim; d += 32 * kWarps) {
        q[d] = toFloat(static_cast<const Q*>(p.q)[row * p.qStride + static_cast<i64>(head) * kDim + d]);
    }
    __syncthreads();
    const int sequence = sequenceOf(p, row);
    const SequenceKeys keys(p, sequence, p.offsets[sequence], p.offsets[sequence + 1]);
    const KeyRange range = visibleKeys(p, sequence, head, keys.first(), keys.last(), p.positions[row]);
    const i64 headAt = static_cast<i64>(head / (p.heads / p.kvHeads)) * kDim;
    float maximum = minusInfinity();
    float total = 0;
    float sums[kPerLane] = {};
    for (int begin = range.lo / 32 * 32 + warp * 32; begin <= range.hi; begin += 32 * kWarps) {
        bool asked = true;
        if constexpr (VT_MASK == 3) {
            const int tile = begin / seen::kKeys - seen::firstTile(keys.first());
            const auto word = seen::word(p, row, head, tile / seen::kTilesOfWord);
            if ((word.some >> tile % seen::kTilesOfWord & 1) == 0) {
                continue;
            }
            asked = (word.whole >> tile % seen::kTilesOfWord & 1) == 0;
        }
        const int position = begin + lane;
        float score = minusInfinity();
        if (position >= range.lo && position <= range.hi) {
            const ScorePlace at{sequence, head, p.positions[row], position};
            score = keys.isNew(position) ? scoreOf<New>(p, keys, at, asked, headAt, q)
                                         : scoreOf<Cache>(p, keys, at, asked, headAt, q);
        }
        const float next = fmaxf(maximum, warpMax(score));
        const float shrink = exp2f(maximum - safeMaximum(next));
        const float weight = exp2f(score - safeMaximum(next));
        maximum = next;
        total = total * shrink + warpSum(weight);
#pragma unroll
        for (float& sum : sums) {
            sum *= shrink;
        }
        for (int i = 0; i < 32; ++i) {
            const float share = __shfl_sync(kAllLanes, weight, i);
            const int at = begin + i;
            if (at < range.lo || at > range.hi) {
                continue;
            }
            if (keys.isNew(at)) {
                addValue<New>(p, keys, at, headAt, share, sums);
            } else {
                addValue<Cache>(p, keys, at, headAt, share, sums);
            }
        }
    }
    writeRow(p, row, head, maximum, total, sums);
}

} // namespace vt
