// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/kv_view.h"

namespace vitrine::kernels::abi {

constexpr int kAttentionAbi = 1;

/// kernels/ops/attention.h. Strides are elements between tokens; heads of a token are contiguous.
struct AttentionParams {
    const void* q;
    const void* newK; ///< or null
    const void* newV;
    const void* sinks; ///< (heads) or null
    void* out;
    float* lse;           ///< (tokens, heads) or null
    const int* offsets;   ///< (sequences + 1)
    const int* positions; ///< (tokens)
    float* partials;      ///< split results: see attention_decode.cuh
    long long qStride, newKStride, newVStride, outStride;
    KvViewParams cache;
    int tokens, heads, kvHeads;
    int causal;
    int window;   ///< INT_MAX: none
    int byRow;    ///< single rows: 1: every row of q is one, whatever its sequence; 0: sequences of exactly one row
    int splits;   ///< the most parts into which a row's keys are cut
    float scale2; ///< scale * log2(e): scores are in base 2
    /// A soft cap's constants: cap * tanh(x * scale / cap) * log2(e) = capOut - 2 * capOut / (1 + 2^(x * capIn)).
    float capIn, capOut;
};

} // namespace vitrine::kernels::abi
