// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What follows the products of q, k and v for many tokens: RoPE of queries and keys in place, and keys and values into
// the cache, each read once. One block a token.

#include "device/abi/rope_write.h"
#include "device/attention/kv_view.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/rowwise/rope_angles.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(128)
    rope_write(const __grid_constant__ vitrine::kernels::abi::RopeWriteParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    using Cache = StorageOf<VT_CACHE_DTYPE>;
    constexpr int kHalf = VT_HEAD_DIM / 2;
    constexpr int kPieces = kHalf / VT_VECTOR;
    __shared__ RopeTable<VT_HEAD_DIM> table;
    const i64 token = blockIdx.x;
    const int position = p.positions[token];
    table.fill<X>(position, p.inverseFrequency, p.attentionScale);
    __syncthreads();
    pdl::wait();
    pdl::launchDependents();
    Cache* key = nullptr;
    Cache* value = nullptr;
    if (p.writeCache != 0) {
        const KvRows<Cache> to(p.cache, p.sequence[token], position);
        key = to.key;
        value = to.value;
    }
    X* q = static_cast<X*>(p.q) + token * p.qStride;
    X* k = static_cast<X*>(p.k) + token * p.kStride;
    for (int index = static_cast<int>(threadIdx.x); index < (p.heads + p.kvHeads) * kPieces; index += 128) {
        const int at = index % kPieces * VT_VECTOR;
        const int head = index / kPieces;
        const bool ofKey = head >= p.heads;
        const int offset = (ofKey ? head - p.heads : head) * VT_HEAD_DIM + at;
        X* low = (ofKey ? k : q) + offset;
        float a[VT_VECTOR], b[VT_VECTOR];
        loadPiece(low, a);
        loadPiece(low + kHalf, b);
        table.rotate(at, a, b);
        storePiece(a, low);
        storePiece(b, low + kHalf);
        if (ofKey && key != nullptr) {
#pragma unroll
            for (int i = 0; i < VT_VECTOR; ++i) { // the cache holds what the keys hold
                a[i] = rounded<X>(a[i]);
                b[i] = rounded<X>(b[i]);
            }
            storePiece(a, key + offset);
            storePiece(b, key + offset + kHalf);
        }
    }
    if (value != nullptr) {
        const X* v = static_cast<const X*>(p.v) + token * p.vStride;
        for (int at = static_cast<int>(threadIdx.x) * VT_VECTOR; at < p.kvHeads * VT_HEAD_DIM; at += 128 * VT_VECTOR) {
            float piece[VT_VECTOR];
            loadPiece(v + at, piece);
            storePiece(piece, value + at);
        }
    }
}

} // namespace vt
