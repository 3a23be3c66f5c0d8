// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// ExpertMlp with grouped products: its scratch, and on CUDA its launches. Pure functions of shapes, so that Meta
// allocates what CUDA does.

#include "kernels/ops/experts/expert_tiles.h"
#include "kernels/ops/fused/blocks.h"

namespace vitrine::kernels {

/// ExpertMlp on a GPU, with the activation in the first product's epilogue.
struct ExpertMlpTiles {
    ExpertMlpTiles(const ExpertMlp& op, ScratchLayout layout);
    static bool fits(const ExpertMlp& op);

    ExpertTiles tiles;
    TensorView gathered; ///< rows of x
    TensorView active;   ///< activated rows, in tiles
    TensorView results;  ///< BF16 (pairs, hidden), where `gathered` was
    std::uint64_t bytes = 0;
};

/// Runs ExpertMlp with grouped products; false, and nothing done, when shapes or the kernel packs do not allow it.
bool multiplyInTiles(CudaContext& context, const ExpertMlp& op);

} // namespace vitrine::kernels
