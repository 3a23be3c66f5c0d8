// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

/// kernels/ops/kv_view.h as kernels see it. Page strides are in elements; `tokenStride` is kvHeads * headDim.
struct KvViewParams {
    void* keys;
    void* values;
    const int* blockTable; ///< (sequences, columns): page numbers, -1 where there is none
    const int* first;      ///< (sequences)
    const int* lengths;    ///< (sequences)
    long long keyPageStride, valuePageStride;
    int sequences, columns, pageTokens, tokenStride;
    int pageShift; ///< log2(pageTokens), or -1
    int ring;      ///< 1: slot = p % (pages of the sequence * pageTokens)
};

} // namespace vitrine::kernels::abi
