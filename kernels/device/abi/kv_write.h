// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/kv_view.h"

namespace vitrine::kernels::abi {

constexpr int kKvWriteAbi = 2;

/// k and v (tokens, view.tokenStride) with `kStride` and `vStride` elements between tokens.
struct KvWriteParams {
    void* k;
    void* v;
    long long kStride, vStride;
    const int* sequence;  ///< (tokens)
    const int* positions; ///< (tokens)
    KvViewParams cache;
    int kvHeads;
    int rounds; ///< 1: k and v become what the cache holds of them
    int writes; ///< 0: the cache is not written
};

} // namespace vitrine::kernels::abi
