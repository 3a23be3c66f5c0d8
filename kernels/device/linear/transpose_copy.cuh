// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Transposed copies of a stack of matrices through 32 x 32 tiles in shared memory.

#include "device/abi/transpose_copy.h"
#include "device/lib/pdl.cuh"
#include "device/lib/types.cuh"

namespace {

using namespace vt;

#if VT_ELEMENT_BYTES == 1
using Element = u8;
#elif VT_ELEMENT_BYTES == 2
using Element = u16;
#elif VT_ELEMENT_BYTES == 4
using Element = u32;
#else
using Element = u64;
#endif

constexpr int kTile = 32;

} // namespace

extern "C" __global__ void __launch_bounds__(256)
    transpose_copy(const __grid_constant__ vitrine::kernels::abi::TransposeCopyParams p) {
    __shared__ Element tile[kTile][kTile + 4 / (VT_ELEMENT_BYTES < 4 ? VT_ELEMENT_BYTES : 4)];
    pdl::wait();
    const int x = static_cast<int>(threadIdx.x) % kTile;
    const int y = static_cast<int>(threadIdx.x) / kTile;
    const i64 tilesOfColumns = (p.columns + kTile - 1) / kTile;
    const i64 column = blockIdx.x % tilesOfColumns * kTile;
    const i64 row = blockIdx.x / tilesOfColumns * kTile;
    const Element* from = static_cast<const Element*>(p.x) + blockIdx.y * p.rows * p.columns;
    Element* to = static_cast<Element*>(p.out) + blockIdx.y * p.rows * p.columns;
    for (int i = y; i < kTile; i += 8) {
        if (row + i < p.rows && column + x < p.columns) {
            tile[i][x] = from[(row + i) * p.columns + column + x];
        }
    }
    __syncthreads();
    for (int i = y; i < kTile; i += 8) {
        if (column + i < p.columns && row + x < p.rows) {
            to[(column + i) * p.rows + row + x] = tile[x][i];
        }
    }
}
