// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/kv_view.h"

namespace vitrine::kernels::abi {

constexpr int kQkvProjectAbi = 2;

/// norm(x) times the three weights (rows of VT_DIM, contiguous), bias, RoPE of q and k, and k and v into the cache.
/// normWeight and the biases may be null. Strides in elements between tokens.
struct QkvProjectParams {
    const void* x;
    const void* normWeight;
    const void* weight[3]; ///< q, k, v
    const void* bias[3];
    const int* positions; ///< (tokens)
    const int* sequence;  ///< (tokens)
    const float* inverseFrequency;
    void* out[3]; ///< (tokens, heads or kvHeads, VT_HEAD_DIM)
    long long xStride;
    long long outStride[3];
    KvViewParams cache;
    int tokens, heads, kvHeads;
    int writeCache;
    float eps, ropeScale;
};

} // namespace vitrine::kernels::abi
