// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Elements of blocks of a mask that interval analysis leaves undecided (kernels/program/block_mask.h), many blocks at
// once.

#include "kernels/core/op.h"
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/program/block_mask.h"

namespace vitrine::kernels {

struct BlockCounts {
    static constexpr std::string_view kName = "BlockCounts";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::BlockMask;
    BoundProgram mask;
    BlockMaskShape shape; ///< lengths and block sizes
    TensorView places;    ///< (count, 4) I32: batch, head, block row, block column; all inside `shape`
    TensorView counts;    ///< (count) I32: allowed elements of each block
    bool exact = false;   ///< false: of a block that is neither empty nor full some number between
};

/// A block has at most 2^30 elements.
void check(const BlockCounts& op);
Cost cost(const BlockCounts& op, const DeviceTraits& traits);
std::uint64_t scratch(const BlockCounts& op, const DeviceTraits& traits);
void execute(CpuContext& context, const BlockCounts& op);
/// The CPU's very numbers, for programs that isExactOnDevice (emitter.h); Unsupported for others.
void execute(CudaContext& context, const BlockCounts& op);

} // namespace vitrine::kernels
