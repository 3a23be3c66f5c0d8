// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes the keys and values of new tokens into a cache, one block a token.

#include "device/abi/kv_write.h"
#include "device/kv_view.cuh"
#include "device/pdl.cuh"
#include "device/vector.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(128)
    kv_write(const __grid_constant__ vitrine::kernels::abi::KvWriteParams p) {
    using K = StorageOf<VT_K_DTYPE>;
    using V = StorageOf<VT_V_DTYPE>;
    using Cache = StorageOf<VT_CACHE_DTYPE>;
    const i64 token = blockIdx.x;
    pdl::wait();
    pdl::launchDependents();
    const KvRows<Cache> to(p.cache, p.sequence[token], p.positions[token]);
    if (to.key == nullptr) {
        return;
    }
    const K* k = static_cast<const K*>(p.k) + token * p.kStride;
    const V* v = static_cast<const V*>(p.v) + token * p.vStride;
    for (int at = static_cast<int>(threadIdx.x) * VT_VECTOR; at < p.cache.tokenStride; at += 128 * VT_VECTOR) {
        float piece[VT_VECTOR];
        loadPiece(k + at, piece);
        storePiece(piece, to.key + at);
        loadPiece(v + at, piece);
        storePiece(piece, to.value + at);
    }
}

} // namespace vt
