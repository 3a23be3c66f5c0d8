// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// A packed weight with an adapter in it, packed again: a thread takes a group. A warp takes the same group of 32 rows,
// so that its lanes read the same values of A; the warps of a thread block take neighbouring groups. Products and sums
// are not fused: the CPU has the same bits.

#include "device/abi/merge_packed.h"
#include "device/formats/mxfp4.cuh"
#include "device/formats/mxfp4_pack.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

using namespace vt;

extern "C" __global__ void __launch_bounds__(256)
    merge_packed(const __grid_constant__ vitrine::kernels::abi::MergePackedParams p) {
    using Value = StorageOf<VT_ADAPTER_DTYPE>;
    pdl::wait();
    const i64 expert = blockIdx.z;
    const i64 group = static_cast<i64>(blockIdx.x) * 8 + threadIdx.x / 32;
    const i64 row = static_cast<i64>(blockIdx.y) * 32 + threadIdx.x % 32;
    if (group >= p.groups || row >= p.rows) {
        return;
    }
    const i64 in = p.groups * 32;
    const Value* a = static_cast<const Value*>(p.a) + expert * p.rank * in + group * 32;
    const Value* b = static_cast<const Value*>(p.b) + (expert * p.rows + row) * p.rank;
    float sums[32] = {};
    for (int r = 0; r < p.rank; ++r, a += in) {
        const float factor = toFloat(b[r]);
#pragma unroll
        for (int i = 0; i < 32; i += 8) {
            float piece[8];
            loadPiece(a + i, piece);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                sums[i + j] = __fadd_rn(sums[i + j], __fmul_rn(factor, piece[j]));
            }
        }
    }
    const i64 place = (expert * p.rows + row) * p.groups + group;
    const u32x4 packed = static_cast<const u32x4*>(p.blocks)[place];
    const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
    const float scale = mxfp4Scale(static_cast<const u8*>(p.scales)[place]);
    float values[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const float before = __fmul_rn(mxfp4Value(words[i / 8] >> (4 * (i % 8)) & 15U), scale);
        values[i] = __fadd_rn(before, __fmul_rn(p.scale, sums[i]));
    }
    u32x4 out;
    static_cast<u8*>(p.outScales)[place] = packMxfp4(values, out);
    static_cast<u32x4*>(p.outBlocks)[place] = out;
}
