// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/kv_view.h"

namespace vitrine::kernels::abi {

constexpr int kRopeWriteAbi = 2;

/// q (tokens, heads, VT_HEAD_DIM) and k (tokens, kvHeads, VT_HEAD_DIM) are rotated in place, k and v go into the cache.
/// Strides are elements between tokens.
struct RopeWriteParams {
    void* q;
    void* k;
    const void* v;
    const int* positions; ///< (tokens)
    const int* sequence;  ///< (tokens)
    const float* inverseFrequency;
    long long qStride, kStride, vStride;
    KvViewParams cache;
    int heads, kvHeads;
    int writeCache; ///< 0: `cache` is not looked at
    float attentionScale;
};

} // namespace vitrine::kernels::abi
