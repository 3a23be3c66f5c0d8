// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Rows of x in the order of sorted pairs, a warp a row.

#include "device/abi/group_pairs.h"
#include "device/lib/pdl.cuh"
#include "device/lib/types.cuh"
#include "device/lib/vector.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

#if VT_PIECE == 16
using Piece = u32x4;
#elif VT_PIECE == 4
using Piece = u32;
#else
using Piece = u16;
#endif

} // namespace

extern "C" __global__ void __launch_bounds__(256) gather_pairs(const __grid_constant__ abi::GatherPairsParams p) {
    pdl::wait();
    pdl::launchDependents();
    const int row = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / 32;
    if (row >= p.rows) {
        return;
    }
    const Piece* from = static_cast<const Piece*>(p.x) + p.pairs[row] / p.pairsPerRow * p.xStride;
    Piece* to = static_cast<Piece*>(p.out) + row * p.outStride;
    for (int i = static_cast<int>(threadIdx.x) % 32; i < p.width; i += 32) {
        to[i] = from[i];
    }
}
