// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// MXFP4 to a dense matrix: a thread takes 8 elements.

#include "device/abi/dequantize.h"
#include "device/formats/mxfp4.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

using namespace vt;

extern "C" __global__ void __launch_bounds__(256)
    dequantize_mxfp4(const __grid_constant__ vitrine::kernels::abi::DequantizeParams p) {
    pdl::wait();
    const i64 word = gridThread();
    if (word >= p.rows * p.weight.groups * 4) {
        return;
    }
    const u32 elements = reinterpret_cast<const u32*>(p.weight.data)[word];
    const float scale = mxfp4Scale(static_cast<const u8*>(p.weight.scales)[word / 4]);
    float values[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        values[i] = mxfp4Value(elements >> (4 * i) & 15U) * scale;
    }
    storePiece(values, static_cast<StorageOf<VT_OUT_DTYPE>*>(p.out) + word * 8);
}
