// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// INT4 in whole groups of neighbours to a dense matrix: a thread takes eight elements of a row at a time, which have
// one scale, and four of such pieces, so that many loads are under way.

#include "device/abi/dequantize.h"
#include "device/formats/scales.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

extern "C" __global__ void __launch_bounds__(256)
    dequantize_int4(const __grid_constant__ vitrine::kernels::abi::DequantizeParams p) {
    using namespace vt;
    using Out = StorageOf<VT_OUT_DTYPE>;
    constexpr int kPieces = 4, kPiecesOfGroup = VT_GROUP / 8;
    pdl::wait();
    const i64 pieces = p.rows * p.weight.in / 8;
    const i64 first = static_cast<i64>(blockIdx.x) * (256 * kPieces) + threadIdx.x;
    const u32* const words = reinterpret_cast<const u32*>(p.weight.data);
    u32 word[kPieces];
    float scale[kPieces], zero[kPieces];
#pragma unroll
    for (int k = 0; k < kPieces; ++k) {
        const i64 piece = min(first + k * 256, pieces - 1);
        const i64 group = piece / kPiecesOfGroup;
        word[k] = words[piece];
        scale[k] = plainScale(p.weight, group);
        zero[k] = static_cast<float>(p.weight.zeros == nullptr ? 8 : p.weight.zeros[group]);
    }
#pragma unroll
    for (int k = 0; k < kPieces; ++k) {
        float values[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            // With these bits above it an integer is a float, 2^23 more.
            const float code = __uint_as_float((word[k] >> (4 * i) & 15U) | 0x4B000000U) - 0x1p23F;
            values[i] = __fmul_rn(code - zero[k], scale[k]);
        }
        if (first + k * 256 < pieces) {
            storePiece(values, static_cast<Out*>(p.out) + (first + k * 256) * 8);
        }
    }
}
