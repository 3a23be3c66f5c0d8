// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Scratch of grouped expert products on a GPU: pairs sorted by expert in tiles of 128 rows, and rows copied into tiles
// (kernels/device/experts/expert_tiles.cuh). Pure functions of shapes, so that Meta allocates what CUDA does.

#include <cstdint>

#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/experts/moe.h"
#include "kernels/ops/linear/linear_view.h"

namespace vitrine::kernels {

/// The sorted pairs. The device knows how many tiles there are; `bound` is the most that there can be.
struct ExpertTiles {
    ExpertTiles(std::int64_t pairs, std::int64_t experts, ScratchLayout& layout);

    std::int64_t pairs = 0;
    std::int64_t experts = 0;
    std::int64_t bound = 0;
    TensorView count; ///< I32 (1)
    TensorView tiles; ///< I32 (bound, 2): expert, rows
    TensorView slots; ///< I32 (bound, 128): pair or -1
};

/// Room for `features` BF16 values of every row of every tile.
TensorView takeTileRows(const ExpertTiles& tiles, std::int64_t features, ScratchLayout& layout);

/// Whether the tensor-core form (family expert_gemm) takes this product of BF16 rows.
bool multipliesInTiles(const LinearView& linear);

/// Up to so many tokens each pair reads INT4 or FP8 weights by itself: hardly two choose the same expert, and nothing
/// needs sorting.
inline constexpr std::int64_t kPackedTokensInPairs = 4;

/// Whether so many tokens are enough for that form.
bool manyInTiles(std::int64_t tokens, const WeightView& weight);

/// ExpertMatmul on a GPU. Without `gathered` rows it multiplies in float32 arithmetic.
struct ExpertMatmulTiles {
    ExpertMatmulTiles(const ExpertMatmul& op, bool gather, ScratchLayout layout);
    static bool gathers(const ExpertMatmul& op);

    ExpertTiles tiles;
    TensorView gathered; ///< or empty
    std::uint64_t bytes = 0;
};

} // namespace vitrine::kernels
