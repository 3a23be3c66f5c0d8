// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// FP8 to a dense matrix: a warp takes a row, each lane eight neighbouring elements at a time, so that loads and stores
// of a warp are whole lines. Eight elements have one scale.

#include "device/abi/dequantize.h"
#include "device/formats/fp8.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

extern "C" __global__ void __launch_bounds__(256)
    dequantize_fp8(const __grid_constant__ vitrine::kernels::abi::DequantizeParams p) {
    using namespace vt;
    constexpr int kPiece = 8;
    pdl::wait();
    const i64 row = static_cast<i64>(blockIdx.x) * 8 + threadIdx.x / 32;
    if (row >= p.rows) {
        return;
    }
    const i64 firstScale = scaleIndex(p.weight, row, 0);
    const u8* from = p.weight.data + row * p.weight.rowBytes;
    auto* out = static_cast<StorageOf<VT_OUT_DTYPE>*>(p.out) + row * p.weight.in;
#pragma unroll 4
    for (int column = static_cast<int>(threadIdx.x % 32) * kPiece; column < p.weight.in; column += 32 * kPiece) {
        const u32x2 bytes = *reinterpret_cast<const u32x2*>(from + column);
        const float scale = plainScale(p.weight, firstScale + column / p.weight.group);
        float values[kPiece];
#pragma unroll
        for (int i = 0; i < kPiece; ++i) {
            values[i] = e4m3Value((i < 4 ? bytes.x : bytes.y) >> i % 4 * 8 & 0xFFU) * scale;
        }
        storePiece(values, out + column);
    }
}
