// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rotary position embedding in place, half-split or interleaved form. A block makes a token's cosines and sines once
// for all heads.

#include "device/abi/rope.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/rowwise/rope_angles.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(128) rope(const __grid_constant__ vitrine::kernels::abi::RopeParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    constexpr int kHalf = VT_HEAD_DIM / 2;
    constexpr int kPieces = kHalf / VT_VECTOR;
    __shared__ RopeTable<VT_HEAD_DIM> table;
    const i64 token = blockIdx.x;
    pdl::wait();
    pdl::launchDependents();
    const int position = p.positions[token];
    table.fill<X>(p.inverse != 0 ? -position : position, p.inverseFrequency, p.attentionScale);
    __syncthreads();
    X* row = static_cast<X*>(p.x) + token * p.stride;
    for (int index = static_cast<int>(threadIdx.x); index < p.heads * kPieces; index += 128) {
        const int at = index % kPieces * VT_VECTOR;
        X* head = row + static_cast<i64>(index / kPieces) * p.headStride;
        X* low = head + (p.interleaved != 0 ? 2 * at : at);
        X* high = p.interleaved != 0 ? low + 1 : low + kHalf;
        float a[VT_VECTOR], b[VT_VECTOR];
        loadPiece(low, a);
        loadPiece(high, b);
        table.rotate(at, a, b);
        storePiece(a, low);
        storePiece(b, high);
    }
}

} // namespace vt
