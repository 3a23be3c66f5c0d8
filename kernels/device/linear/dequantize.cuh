// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// A packed weight of any format to a dense matrix: a thread takes 8 neighbouring elements of the whole stack. For
// formats that have no faster kernel.

#include "device/abi/dequantize.h"
#include "device/formats/packed_element.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"

using namespace vt;

extern "C" __global__ void __launch_bounds__(256)
    dequantize(const __grid_constant__ vitrine::kernels::abi::DequantizeParams p) {
    constexpr int kElements = 8;
    pdl::wait();
    const i64 first = gridThread() * kElements;
    const i64 elements = p.rows * p.weight.in;
    auto* out = static_cast<StorageOf<VT_OUT_DTYPE>*>(p.out);
    float values[kElements];
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
        const i64 element = first + i;
        values[i] = element < elements
                        ? packedElement(p.weight, element / p.weight.in, static_cast<int>(element % p.weight.in))
                        : 0;
    }
    if (first + kElements <= elements) {
        storePiece(values, out + first);
        return;
    }
    for (int i = 0; i < kElements && first + i < elements; ++i) {
        out[first + i] = fromFloat<StorageOf<VT_OUT_DTYPE>>(values[i]);
    }
}
