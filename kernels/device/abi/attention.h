// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/flex_attention.h"
#include "device/abi/kv_view.h"
#include "device/abi/program.h"

namespace vitrine::kernels::abi {

constexpr int kAttentionAbi = 4;

/// Of 32 neighbouring tiles of 64 keys, a bit each: those of which a row sees something, and those of which it sees
/// every key that exists.
struct AttentionTiles {
    unsigned some, whole;
};

/// kernels/ops/attention/attention.h. Strides are elements between tokens; heads of a token are contiguous.
struct AttentionParams {
    const void* q;
    const void* newK; ///< or null
    const void* newV;
    const void* sinks; ///< (heads) or null
    void* out;
    float* lse;           ///< (heads, tokens) or null
    const int* offsets;   ///< (sequences + 1)
    const int* positions; ///< (tokens)
    float* partials;      ///< split results: see attention_decode.cuh
    long long qStride, newKStride, newVStride, outStride;
    KvViewParams cache;
    int tokens, heads, kvHeads;
    /// Single rows: 1: every row of q is one, whatever its sequence; 0: sequences of exactly one row. Many rows: 1:
    /// those of every sequence; 0: not of sequences of exactly one row.
    int byRow;
    int splits;            ///< the most parts into which a row's keys are cut
    float scale;           ///< scores are q.k * scale before the score program
    float scale2;          ///< scale * log2(e)
    AttentionTiles* tiles; ///< (tokens, tileHeads, tileWords): attention_tiles.cuh writes them
    int tileHeads;         ///< 1: the same for all heads
    int tileWords;         ///< 0: there are none
};

/// The same with what the programs capture.
struct AttentionProgramParams : AttentionParams {
    ProgramCaptures scoreCaptures, maskCaptures;
};

/// What sequences of many rows need: tensor maps of q, the pools of pages and the step's own tokens (hopper form only).
/// Queries: boxes of (64 columns, the heads of a group, rows). Pools: (columns, kvHeads, tokens of a page, pages),
/// boxes of 64 columns (of bytes: all) and `pageBox` tokens of one head. New tokens: (columns, kvHeads, tokens), boxes
/// of 64 tokens of one head.
struct AttentionPrefillParams : AttentionProgramParams {
    TensorMap queryMap, keyMap, valueMap, newKeyMap, newValueMap;
};

} // namespace vitrine::kernels::abi
