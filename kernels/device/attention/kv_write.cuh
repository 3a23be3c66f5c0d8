// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes the keys and values of new tokens into a cache, one block a token. Into a quantized cache a warp takes a row
// of one head, keys first: steps of few tokens wait for this kernel, so that its rows do not wait for each other.

#include "device/abi/kv_write.h"
#include "device/attention/kv_bytes.cuh"
#include "device/attention/kv_view.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

namespace vt {

namespace kv_write_rows {

using Params = vitrine::kernels::abi::KvWriteParams;
using Cache = StorageOf<VT_CACHE_DTYPE>;
inline constexpr bool kBytes = sizeof(Cache) == 1;
inline constexpr int kThreads = kBytes ? 512 : 128;

/// `to` is null where the token is not kept.
template <class T> __device__ __forceinline__ void writeFloats(const Params& p, T* from, Cache* to) {
    for (int at = static_cast<int>(threadIdx.x) * VT_VECTOR; at < p.cache.tokenStride; at += kThreads * VT_VECTOR) {
        float piece[VT_VECTOR];
        loadPiece(from + at, piece);
        if (to != nullptr) {
            storePiece(piece, to + at);
        }
        if (p.rounds != 0) {
#pragma unroll
            for (float& x : piece) {
                x = rounded<Cache>(x);
            }
            storePiece(piece, from + at);
        }
    }
}

/// `scale` is where it goes, if `to` is anywhere. A warp together.
template <class T>
__device__ __forceinline__ void writeBytes(const Params& p, T* row, int dim, Cache* to, float* scale) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    u32 largest = 0;
    for (int d = lane; d < dim; d += 32) {
        largest = max(largest, bytes::magnitudeBits(toFloat(row[d])));
    }
    const bytes::Scale by = bytes::scaleOf<Cache>(__reduce_max_sync(kAllLanes, largest));
    for (int d = lane; d < dim; d += 32) {
        const Cache byte = bytes::quantized<Cache>(toFloat(row[d]), by);
        if (to != nullptr) {
            to[d] = byte;
        }
        if (p.rounds != 0) {
            row[d] = fromFloat<T>(toFloat(byte) * by.scale);
        }
    }
    if (to != nullptr && lane == 0) {
        *scale = by.scale;
    }
}

template <class K, class V>
__device__ __forceinline__ void writeHeads(const Params& p, K* k, V* v, const KvRows<Cache>& to) {
    const int dim = p.cache.tokenStride / p.kvHeads;
    for (int row = static_cast<int>(threadIdx.x) / 32; row < 2 * p.kvHeads; row += kThreads / 32) {
        const int head = row < p.kvHeads ? row : row - p.kvHeads;
        const bool kept = to.key != nullptr;
        if (row < p.kvHeads) {
            writeBytes(p, k + head * dim, dim, kept ? to.key + head * dim : nullptr,
                       to.keyScale + head * p.cache.pageTokens);
        } else {
            writeBytes(p, v + head * dim, dim, kept ? to.value + head * dim : nullptr,
                       to.valueScale + head * p.cache.pageTokens);
        }
    }
}

} // namespace kv_write_rows

extern "C" __global__ void __launch_bounds__(kv_write_rows::kThreads)
    kv_write(const __grid_constant__ vitrine::kernels::abi::KvWriteParams p) {
    using namespace kv_write_rows;
    using K = StorageOf<VT_K_DTYPE>;
    using V = StorageOf<VT_V_DTYPE>;
    const i64 token = blockIdx.x;
    const KvRows<Cache> to(p.cache, p.writes != 0 ? p.sequence[token] : -1, p.positions[token]);
    pdl::wait();
    pdl::launchDependents();
    if (to.key == nullptr && p.rounds == 0) {
        return;
    }
    K* const k = static_cast<K*>(p.k) + token * p.kStride;
    V* const v = static_cast<V*>(p.v) + token * p.vStride;
    if constexpr (kBytes) {
        writeHeads(p, k, v, to);
    } else {
        writeFloats(p, k, to.key);
        writeFloats(p, v, to.value);
    }
}

} // namespace vt
