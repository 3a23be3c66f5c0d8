// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One element of a packed weight as float32, for kernels that take every format: VT_W_FORMAT says which. A new format
// has its header here and nothing else in device code.

#include "device/abi/packed_weight.h"
#include "device/abi/weight_format.h"
#include "device/lib/types.cuh"

#if VT_W_FORMAT == VT_FORMAT_MXFP4
#include "device/formats/mxfp4.cuh"
#elif VT_W_FORMAT == VT_FORMAT_NF4
#include "device/formats/nf4.cuh"
#elif VT_W_FORMAT == VT_FORMAT_INT4 || VT_W_FORMAT == VT_FORMAT_INT8
#include "device/formats/integer.cuh"
#elif VT_W_FORMAT == VT_FORMAT_FP8
#include "device/formats/fp8.cuh"
#elif VT_W_FORMAT >= VT_FORMAT_Q4_K && VT_W_FORMAT <= VT_FORMAT_Q5_K
#include "device/formats/k_quant.cuh"
#endif

namespace vt {

/// Element `column` of row `row`, which counts the rows of all matrices of a stack.
__device__ __forceinline__ float packedElement(const vitrine::kernels::abi::PackedWeight& weight, i64 row, int column) {
#if VT_W_FORMAT == VT_FORMAT_MXFP4
    return mxfp4Element(weight, row, column);
#elif VT_W_FORMAT == VT_FORMAT_NF4
    return nf4Element(weight, row, column);
#elif VT_W_FORMAT == VT_FORMAT_INT4
    return integerElement<4>(weight, row, column);
#elif VT_W_FORMAT == VT_FORMAT_INT8
    return integerElement<8>(weight, row, column);
#elif VT_W_FORMAT == VT_FORMAT_FP8
    return fp8Element(weight, row, column);
#elif VT_W_FORMAT == VT_FORMAT_Q4_K
    return q4kElement(weight, row, column);
#elif VT_W_FORMAT == VT_FORMAT_Q6_K
    return q6kElement(weight, row, column);
#elif VT_W_FORMAT == VT_FORMAT_Q4_1
    return q41Element(weight, row, column);
#elif VT_W_FORMAT == VT_FORMAT_Q5_1
    return q51Element(weight, row, column);
#elif VT_W_FORMAT == VT_FORMAT_Q5_K
    return q5kElement(weight, row, column);
#else
    return 0;
#endif
}

} // namespace vt
