// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Grouped expert products as kernel calls.

#include <array>

#include "kernels/device/abi/expert_gemm.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/experts/expert_tiles.h"
#include "kernels/ops/rowwise/gated_activation.h"

namespace vitrine::kernels {

/// Sorts the pairs (token, choice) of `ids` by expert into tiles.
void sortPairs(CudaContext& context, const TensorView& ids, const ExpertTiles& tiles);

/// Copies rows of x into the tiles; `pairsPerRow` neighbouring pairs share a row.
void gatherRows(CudaContext& context, const TensorView& x, std::int64_t pairsPerRow, const ExpertTiles& tiles,
                const TensorView& gathered);

/// A product over tiles; `Gate` adds the activation.
struct TileProduct {
    struct Gate {
        Activation activation;
        GateLayout layout;
        float alpha, limit;
    };

    TileProduct(const ExpertTiles& tiles, const TensorView& rows, const LinearView& linear, const TensorView& result,
                const Gate* gate);
    KernelCall call() const { return callOf("expert_gemm", abi::kExpertGemmAbi, params, variables); }

    abi::ExpertGemmParams params{};
    std::array<KernelVariable, 11> variables;
};

} // namespace vitrine::kernels
