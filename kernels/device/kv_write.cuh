// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes the keys and values of new tokens into a cache, one block a token. Positions that the cache does not keep
// (older than the window, or behind the end) are left out.

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
    const int sequence = p.sequence[token];
    if (sequence < 0 || sequence >= p.cache.sequences) {
        return;
    }
    const KvSequence kept(p.cache, sequence);
    const int position = p.positions[token];
    if (position < kept.first() || position >= kept.end()) {
        return;
    }
    const KvSequence::Slot slot = kept.slot(position);
    if (slot.page < 0) {
        return;
    }
    const i64 inPage = static_cast<i64>(slot.inPage) * p.cache.tokenStride;
    Cache* key = static_cast<Cache*>(p.cache.keys) + slot.page * p.cache.keyPageStride + inPage;
    Cache* value = static_cast<Cache*>(p.cache.values) + slot.page * p.cache.valuePageStride + inPage;
    const K* k = static_cast<const K*>(p.k) + token * p.kStride;
    const V* v = static_cast<const V*>(p.v) + token * p.vStride;
    for (int at = static_cast<int>(threadIdx.x) * VT_VECTOR; at < p.cache.tokenStride; at += 128 * VT_VECTOR) {
        float piece[VT_VECTOR];
        loadPiece(k + at, piece);
        storePiece(piece, key + at);
        loadPiece(v + at, piece);
        storePiece(piece, value + at);
    }
}

} // namespace vt
