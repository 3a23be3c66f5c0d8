// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Pieces of gates and ups in a row of (2 n). kLayout 0: gates, then ups; 1: gate, up, gate, up.

#include "device/lib/vector.cuh"

namespace vt {

/// Gates and ups at .. at + kCount - 1.
template <int kLayout, int kCount, class T>
__device__ __forceinline__ void loadGates(const T* row, i64 n, i64 at, float (&gate)[kCount], float (&up)[kCount]) {
    if constexpr (kLayout == 0) {
        loadPiece(row + at, gate);
        loadPiece(row + n + at, up);
    } else {
        float first[kCount], second[kCount];
        loadPiece(row + 2 * at, first);
        loadPiece(row + 2 * at + kCount, second);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            gate[i] = 2 * i < kCount ? first[2 * i % kCount] : second[2 * i % kCount];
            up[i] = 2 * i + 1 < kCount ? first[(2 * i + 1) % kCount] : second[(2 * i + 1) % kCount];
        }
    }
}

/// The reverse.
template <int kLayout, int kCount, class T>
__device__ __forceinline__ void storeGates(const float (&gate)[kCount], const float (&up)[kCount], T* row, i64 n,
                                           i64 at) {
    if constexpr (kLayout == 0) {
        storePiece(gate, row + at);
        storePiece(up, row + n + at);
    } else {
        float both[2][kCount];
#pragma unroll
        for (int i = 0; i < 2 * kCount; ++i) {
            both[i / kCount][i % kCount] = i % 2 == 0 ? gate[i / 2] : up[i / 2];
        }
        storePiece(both[0], row + 2 * at);
        storePiece(both[1], row + 2 * at + kCount);
    }
}

} // namespace vt
