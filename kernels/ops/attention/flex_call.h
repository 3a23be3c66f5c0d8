// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What both attention ops pass to the kernels of FlexAttention beside their captures (program_captures.h).

#include <vector>

#include "kernels/ops/attention/flex_source.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

/// Tiles of the portable forms: what registers and shared memory allow.
struct FlexTiles {
    std::int64_t rowTiles, tile, stages, blocksOfSm;

    void addTo(std::vector<KernelVariable>& variables) const {
        variables.insert(
            variables.end(),
            {{"warps", 4}, {"row_tiles", rowTiles}, {"tile", tile}, {"stages", stages}, {"blocks_of_sm", blocksOfSm}});
    }
};

/// Whether the Hopper form (wgmma and tensor maps) takes the forward pass on a GPU of that major version.
inline bool hasHopperForward(int major, std::int64_t headDim) {
    return major == 9 && (headDim == 64 || headDim == 96 || headDim == 128);
}

inline FlexTiles forwardTiles(std::int64_t headDim, const FlexSource& source) {
    if (headDim <= 64) {
        return {2, source.hasScore || source.mask != FlexMask::None ? 32 : 64, 2, 2};
    }
    if (headDim <= 128) {
        return {source.hasScore ? 1 : 2, 32, 2, 2};
    }
    return {1, 32, 1, 1};
}

} // namespace vitrine::kernels
