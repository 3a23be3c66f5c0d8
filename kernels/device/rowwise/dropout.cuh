// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Dropout as on the CPU: word e % 4 of Philox block e / 4 chooses for element e of the whole. A thread takes a piece of
// VT_VECTOR elements.

#include "device/abi/dropout.h"
#include "device/lib/pdl.cuh"
#include "device/lib/philox.cuh"
#include "device/lib/vector.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(256)
    dropout(const __grid_constant__ vitrine::kernels::abi::DropoutParams p) {
    pdl::wait();
    pdl::launchDependents();
    const i64 pieces = p.n / VT_VECTOR;
    const i64 index = gridThread();
    if (index >= p.rows * pieces) {
        return;
    }
    const i64 row = index / pieces;
    const i64 at = index % pieces * VT_VECTOR;
    const u64 first = static_cast<u64>((p.firstRow + row) * p.n + at);
    float values[VT_VECTOR];
    loadPiece(static_cast<const StorageOf<VT_X_DTYPE>*>(p.x) + row * p.xStride + at, values);
    constexpr int kPerBlock = VT_VECTOR < 4 ? VT_VECTOR : 4;
#pragma unroll
    for (int begin = 0; begin < VT_VECTOR; begin += kPerBlock) {
        const u64 element = first + begin;
        const u32x4 block = philox4x32(p.key0, p.key1, element / 4, p.stream);
        const u32 words[4] = {block.x, block.y, block.z, block.w};
#pragma unroll
        for (int i = 0; i < kPerBlock; ++i) {
            // A piece of eight begins a block: its elements have a place that the compiler knows.
            const u32 place = kPerBlock == 4 ? static_cast<u32>(i) : static_cast<u32>(element % 4);
            const u32 word = place == 0 ? words[0] : place == 1 ? words[1] : place == 2 ? words[2] : words[3];
            values[begin + i] = word < p.threshold ? 0.0F : values[begin + i] * p.factor;
        }
    }
    storePiece(values, static_cast<StorageOf<VT_OUT_DTYPE>*>(p.out) + row * p.outStride + at);
}

} // namespace vt
