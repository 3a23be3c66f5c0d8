// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the portable passes of FlexAttention's backward share.

#include "device/attention/flex_attention_terms.cuh"

namespace vt {

namespace flex {

inline constexpr int kWarps = VT_WARPS;
inline constexpr int kRowTiles =
    VT_ROW_TILES; ///< of a warp, 16 rows each: queries in the pass for dq, keys for dk and dv
inline constexpr int kRows = kWarps * kRowTiles * 16;
inline constexpr int kColumns = VT_TILE; ///< of a tile that comes by
inline constexpr int kStages = VT_STAGES;
inline constexpr int kThreads = kWarps * 32;
inline constexpr int kTiles = kColumns / 8;

using Scores = float[kRowTiles][kTiles][4];

} // namespace flex

} // namespace vt
