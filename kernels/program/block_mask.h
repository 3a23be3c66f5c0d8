// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which blocks of a mask are full, partial or empty, as runs: a causal mask of 8,192 blocks a side needs 16,384 runs,
// not 67 million entries. A block is full when all its real elements are allowed (edge blocks are clipped to the
// lengths), empty when none is, else partial.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/stop.h"
#include "base/thread_pool.h"
#include "kernels/program/program.h"

namespace vitrine::kernels {

/// Neighbouring blocks of one kind.
struct BlockRun {
    std::int32_t first = 0;
    std::int32_t count = 0;
    bool full = false;
};

struct BlockMaskShape {
    std::int64_t batch = 1, heads = 1; ///< 1: the same for all (the program does not depend on it)
    std::int64_t queries = 0, keys = 0;
    std::int64_t queryBlock = 128, keyBlock = 128; ///< any positive size

    std::int64_t queryBlocks() const { return (queries + queryBlock - 1) / queryBlock; }
    std::int64_t keyBlocks() const { return (keys + keyBlock - 1) / keyBlock; }
};

/// Immutable. Row i of (batch, head): runs rowOffsets[index(b, h, i)] .. rowOffsets[index + 1] - 1 of rowRuns,
/// ascending; columns likewise.
struct BlockMask {
    BlockMaskShape shape;
    std::vector<std::int64_t> rowOffsets, columnOffsets;
    std::vector<BlockRun> rowRuns, columnRuns;
    std::int64_t full = 0, partial = 0, empty = 0; ///< blocks over shape.batch x shape.heads

    std::span<const BlockRun> row(std::int64_t batch, std::int64_t head, std::int64_t block) const;
    std::span<const BlockRun> column(std::int64_t batch, std::int64_t head, std::int64_t block) const;
    std::uint64_t metadataBytes() const; ///< of all four arrays
    /// 1 - (full + partial) / all blocks.
    double blockSparsity() const;
    /// full / (full + partial); 0 when there are none.
    double fullShare() const;
};

/// A block of a mask.
struct BlockPlace {
    std::int32_t batch = 0, head = 0, row = 0, column = 0;
};

/// Evaluates the elements of blocks on a device instead of the threads of the pool. Called from one thread.
class BlockEvaluator {
public:
    static constexpr std::int64_t kLargestBlock = std::int64_t{1} << 30; ///< elements
    virtual ~BlockEvaluator() = default;
    /// Writes the number of allowed elements of each block. Unless `exact`, a block that is neither empty nor full may
    /// get any number between.
    virtual void count(std::span<const BlockPlace> places, bool exact, std::span<std::int32_t> counts) = 0;
    /// From how many elements on the copies to the device and back are worth it.
    virtual std::int64_t worthElements() const = 0;
};

/// Hierarchical: boxes that interval analysis cannot decide are quartered down to single blocks, whose elements are
/// then evaluated, by `evaluator` where there is one and they are many. Batch and heads collapse to 1 where the program
/// ignores them. Throws BadInput for a score program, sizes that are not positive or too large (2^30 a side, 2^31
/// runs).
BlockMask buildBlockMask(const Program& mask, const CaptureBinding& binding, BlockMaskShape shape,
                         base::ThreadPool& pool, base::ProgressSink* progress = nullptr,
                         const base::StopToken& stop = {}, BlockEvaluator* evaluator = nullptr);
/// The shape that a mask's blocks have: batch and heads collapse to 1 where the program ignores them.
BlockMaskShape collapsedShape(const Program& mask, BlockMaskShape shape);

/// Allowed elements over all elements. Counts full blocks by their clipped size and evaluates partial ones (interval
/// rows in closed form where the mask has one).
double elementDensity(const BlockMask& blocks, const Program& mask, const CaptureBinding& binding,
                      base::ThreadPool& pool, const base::StopToken& stop = {}, BlockEvaluator* evaluator = nullptr);

/// The same mask in coarser blocks for a picture: of each cell of `columns x rows` cells over the block rectangle
/// [q0, q1) x [k0, k1) the number of full, partial and empty blocks in it. Cost follows the runs, never the area.
struct BlockCell {
    std::int64_t full = 0, partial = 0, empty = 0;
};
std::vector<BlockCell> blockCells(const BlockMask& mask, std::int64_t batch, std::int64_t head, std::int64_t q0,
                                  std::int64_t q1, std::int64_t k0, std::int64_t k1, int columns, int rows);

/// PyTorch's arrays (int32): kv_num_blocks (B, H, Q), kv_indices (B, H, Q, K), full_kv_* and the transposed q_*,
/// full_q_*. `edgeBlocksArePartial` counts blocks that the lengths cut as partial, as PyTorch does. Throws BadInput
/// with the size when they would take more than `limitBytes`.
struct DenseBlockMask {
    std::vector<std::int32_t> kvNumBlocks, kvIndices, fullKvNumBlocks, fullKvIndices;
    std::vector<std::int32_t> qNumBlocks, qIndices, fullQNumBlocks, fullQIndices;
};
DenseBlockMask denseBlockMask(const BlockMask& mask, bool edgeBlocksArePartial, std::uint64_t limitBytes);

} // namespace vitrine::kernels
