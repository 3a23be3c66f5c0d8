// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

/// kernels/ops/attention/kv_view.h as kernels see it. Page strides are in elements (of scales: in scales);
/// `tokenStride` is kvHeads * headDim.
struct KvViewParams {
    void* keys;
    void* values;
    const int* blockTable; ///< (sequences, columns): page numbers, -1 where there is none
    const int* first;      ///< (sequences)
    const int* lengths;    ///< (sequences)
    float* keyScales;      ///< (pages, kvHeads, pageTokens) of a quantized cache, else null
    float* valueScales;
    long long keyPageStride, valuePageStride;
    long long keyScaleStride, valueScaleStride;
    int sequences, columns, pageTokens, tokenStride;
    int pageShift; ///< log2(pageTokens), or -1
    int ring;      ///< 1: slot = p % (pages of the sequence * pageTokens)
};

} // namespace vitrine::kernels::abi
