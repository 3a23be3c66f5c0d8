// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes the keys and values of new tokens into a cache, one block a token. Into a quantized cache a warp takes a row of one
// head at a time.

#include "device/abi/kv_write.h"
#include "device/kv_bytes.cuh"
#include "device/kv_view.cuh"
#include "device/pdl.cuh"
#include "device/vector.cuh"

namespace vt {

namespace kv_write_rows {

using Params = vitrine::kernels::abi::KvWriteParams;
using Cache = StorageOf<VT_CACHE_DTYPE>;
inline constexpr int kThreads = 128;

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

template <class T> __device__ __forceinline__ void writeBytes(const Params& p, T* from, Cache* to, float* scales) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int dim = p.cache.tokenStride / p.kvHeads;
    for (int head = static_cast<int>(threadIdx.x) / 32; head < p.kvHeads; head += kThreads / 32) {
        T* const row = from + head * dim;
        u32 largest = 0;
        for (int d = lane; d < dim; d += 32) {
            largest = max(largest, bytes::magnitudeBits(toFloat(row[d])));
        }
        const bytes::Scale by = bytes::scaleOf<Cache>(__reduce_max_sync(kAllLanes, largest));
        for (int d = lane; d < dim; d += 32) {
            const Cache byte = bytes::quantized<Cache>(toFloat(row[d]), by);
            if (to != nullptr) {
                to[head * dim + d] = byte;
            }
            if (p.rounds != 0) {
                row[d] = fromFloat<T>(toFloat(byte) * by.scale);
            }
        }
        if (to != nullptr && lane == 0) {
            scales[head * p.cache.pageTokens] = by.scale;
        }
    }
}

template <class T> __device__ __forceinline__ void write(const Params& p, T* from, Cache* to, float* scales) {
    if constexpr (sizeof(Cache) == 1) {
        writeBytes(p, from, to, scales);
    } else {
        writeFloats(p, from, to);
    }
}

} // namespace kv_write_rows

extern "C" __global__ void __launch_bounds__(kv_write_rows::kThreads)
    kv_write(const __grid_constant__ vitrine::kernels::abi::KvWriteParams p) {
    using namespace kv_write_rows;
    using K = StorageOf<VT_K_DTYPE>;
    using V = StorageOf<VT_V_DTYPE>;
    const i64 token = blockIdx.x;
    pdl::wait();
    pdl::launchDependents();
    const KvRows<Cache> to(p.cache, p.writes != 0 ? p.sequence[token] : -1, p.positions[token]);
    if (to.key == nullptr && p.rounds == 0) {
        return;
    }
    write(p, static_cast<K*>(p.k) + token * p.kStride, to.key, to.keyScale);
    write(p, static_cast<V*>(p.v) + token * p.vStride, to.value, to.valueScale);
}

} // namespace vt
