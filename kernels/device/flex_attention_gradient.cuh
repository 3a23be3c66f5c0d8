// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the two passes of FlexAttention's backward share: from scores, dP = gradOut V^T and the row's LSE and delta to the
// weights P and the gradients of the scores before their program.
//   P = exp(post - lse), dS = P (dP - delta), gradient = scoreGradient(pre, dS); 0 where the mask forbids.

#include "device/flex_attention_tiles.cuh"

namespace vt {

namespace flex {

inline constexpr int kWarps = VT_WARPS;
inline constexpr int kRowTiles =
    VT_ROW_TILES; ///< of a warp, 16 rows each: queries in the pass for dq, keys for dk and dv
inline constexpr int kRows = kWarps * kRowTiles * 16;
inline constexpr int kColumns = VT_COLUMNS; ///< of a tile that comes by
inline constexpr int kStages = VT_STAGES;
inline constexpr int kThreads = kWarps * 32;
inline constexpr int kTiles = kColumns / 8;

using Scores = float[kRowTiles][kTiles][4];

/// LSE as the exponent's offset in base 2: rows that saw nothing have no weights whatever it is.
__device__ __forceinline__ float offsetOf(float lse) {
    return lse == minusInfinity() ? 0.0F : lse * kLog2e;
}

struct Element {
    int batch, head, query, key;
};

/// One element: `score` is q.k and becomes its gradient, `dWeight` is dP and becomes P.
template <class Sink>
__device__ __forceinline__ void differentiate(const FlexAttentionParams& p, const Element& at, bool tested,
                                              bool partial, float offset, float delta, float& score, float& dWeight,
                                              Sink&& sink) {
    const float pre = score * p.scale;
    float post = pre;
    if constexpr (VT_SCORE != 0) {
        post = scoreMod(pre, at.batch, at.head, at.query, at.key, p.captures);
    }
    bool allowed = true;
    if (tested) {
        allowed = at.query < p.queries && at.key < p.keys;
        if constexpr (VT_MASK == 1) {
            allowed = allowed && (!partial || maskMod(at.batch, at.head, at.query, at.key, p.captures));
        }
    }
    const float weight = allowed ? exp2Fast(fmaf(post, kLog2e, -offset)) : 0.0F;
    const float upstream = weight * (dWeight - delta);
    float gradient = upstream;
    if constexpr (VT_SCORE != 0) {
        gradient = allowed ? scoreGradient(pre, upstream, at.batch, at.head, at.query, at.key, p.captures) : 0.0F;
    }
    if constexpr (VT_CAPTURE_GRADIENTS != 0) {
        if (allowed) {
            captureGradients(pre, upstream, at.batch, at.head, at.query, at.key, p.captures, sink);
        }
    }
    score = gradient;
    dWeight = weight;
}

} // namespace flex

} // namespace vt
