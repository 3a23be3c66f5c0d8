// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Embedding lookup, and the gather of rows that the head reads. A thread copies a piece of VT_VECTOR elements.

#include "device/abi/embedding.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(256)
    embedding(const __grid_constant__ vitrine::kernels::abi::EmbeddingParams p) {
    using Table = StorageOf<VT_TABLE_DTYPE>;
    using Out = StorageOf<VT_OUT_DTYPE>;
    pdl::wait();
    pdl::launchDependents();
    const i64 pieces = p.dim / VT_VECTOR;
    const i64 index = gridThread();
    if (index >= p.tokens * pieces) {
        return;
    }
    const i64 token = index / pieces;
    const i64 at = index % pieces * VT_VECTOR;
    const int id = p.ids[token];
    float values[VT_VECTOR];
    if (id >= 0 && id < p.vocab) {
        loadPiece(static_cast<const Table*>(p.table) + id * p.tableStride + at, values);
    } else {
        // Hosts check ids; a wrong one that comes from the device must show and must not read elsewhere.
#pragma unroll
        for (float& value : values) {
            value = __int_as_float(0x7FC00000);
        }
    }
#pragma unroll
    for (float& value : values) {
        value *= p.scale;
    }
    storePiece(values, static_cast<Out*>(p.out) + token * p.outStride + at);
}

} // namespace vt
