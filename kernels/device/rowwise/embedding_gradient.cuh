// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The gradient of an embedding table. A block for each place of the sorted order; the one that begins a run of equal
// ids sums the run's rows, a thread VT_VECTOR columns of them, in the order of the places.

#include "device/abi/embedding_gradient.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

namespace vt {

/// The id at a place of the order; -1 where there is none.
__device__ __forceinline__ int idAtPlace(const vitrine::kernels::abi::EmbeddingGradientParams& p, i64 place) {
    if (place < 0 || place >= p.tokens) {
        return -1;
    }
    const int token = p.order[place];
    return token >= 0 && token < p.tokens ? p.ids[token] : -1;
}

extern "C" __global__ void __launch_bounds__(128)
    embedding_gradient(const __grid_constant__ vitrine::kernels::abi::EmbeddingGradientParams p) {
    pdl::wait();
    pdl::launchDependents();
    const i64 begin = blockIdx.x;
    const i64 at = (static_cast<i64>(blockIdx.y) * 128 + threadIdx.x) * VT_VECTOR;
    const int id = idAtPlace(p, begin);
    // Hosts check ids; a wrong one that comes from the device must not write elsewhere.
    if (at >= p.dim || id < 0 || id >= p.vocab || idAtPlace(p, begin - 1) == id) {
        return;
    }
    const auto* gradOut = static_cast<const StorageOf<VT_GRAD_DTYPE>*>(p.gradOut) + at;
    float sums[VT_VECTOR] = {}, values[VT_VECTOR];
    for (i64 place = begin; idAtPlace(p, place) == id; ++place) {
        loadPiece(gradOut + p.order[place] * p.gradOutStride, values);
#pragma unroll
        for (int i = 0; i < VT_VECTOR; ++i) {
            sums[i] += values[i];
        }
    }
    float* to = p.gradTable + id * p.gradTableStride + at;
    loadPiece(to, values);
#pragma unroll
    for (int i = 0; i < VT_VECTOR; ++i) {
        values[i] += p.scale * sums[i];
    }
    storePiece(values, to);
}

} // namespace vt
