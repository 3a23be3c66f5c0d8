// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What both attention ops tell the kernels of FlexAttention.

#include <vector>

#include "kernels/device/abi/program.h"
#include "kernels/ops/cuda_call.h"
#include "kernels/ops/flex_source.h"

namespace vitrine::kernels {

static_assert(abi::kProgramCaptures >= kMaxProgramCaptures, "a program may have more captures than kernels take");

inline abi::ProgramCaptures capturesOf(const BoundProgram& program) {
    abi::ProgramCaptures out{};
    for (std::size_t i = 0; i < program.captures.tensors.size(); ++i) {
        const TensorView& tensor = program.captures.tensors[i];
        abi::ProgramCapture& item = out.items[i];
        item.data = tensor.data;
        item.rowStride = tensor.shape.rank() == 0 ? 0 : tensor.stride0();
        for (int dim = 0; dim < kMaxCaptureRank; ++dim) {
            item.extents[dim] = dim < tensor.shape.rank() ? toInt(tensor.shape[dim], "Attention", "captures") : 1;
        }
    }
    return out;
}

/// Tiles of the portable forms: what registers and shared memory allow.
struct FlexTiles {
    std::int64_t rowTiles, tile, stages, blocksOfSm;

    void addTo(std::vector<KernelVariable>& variables) const {
        variables.insert(
            variables.end(),
            {{"warps", 4}, {"row_tiles", rowTiles}, {"tile", tile}, {"stages", stages}, {"blocks_of_sm", blocksOfSm}});
    }
};

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
