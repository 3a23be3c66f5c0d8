// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rectangles of a mask as small grids, for tiles of the map: blocks counted by kind, elements by what decides them,
// scores. Cost follows the runs of the block rows and the size of the grid, never the area of the mask. Any thread;
// throws Cancelled.

#include <array>
#include <span>
#include <vector>

#include "ui/models/mask_lab/mask_map.h"

namespace vitrine::ui {

/// Kinds of blocks: of one mask the first three, of two masks the others ("only A computes it").
namespace mask_kind {
inline constexpr std::size_t kFull = 0, kPartial = 1, kEmpty = 2;
inline constexpr std::size_t kOnlyA = 0, kOnlyB = 1, kNeither = 2, kBoth = 3;
} // namespace mask_kind

using BlockCounts = std::array<std::int64_t, 4>; ///< by kind

struct BlockGrid {
    std::size_t columns = 0, rows = 0;
    std::vector<BlockCounts> cells; ///< row by row
    const BlockCounts& at(std::size_t column, std::size_t row) const { return cells[row * columns + column]; }
};

/// Cell (x, y) counts the blocks of columns columnEdges[x] .. columnEdges[x + 1] - 1, rows likewise. Edges ascend and
/// lie in the mask. `other`: null, or a mask of the same lengths and blocks, then the kinds are those of the
/// difference.
BlockGrid countBlocks(const MaskMap& map, const MaskMap* other, std::span<const std::int64_t> columnEdges,
                      std::span<const std::int64_t> rowEdges, const base::StopToken& stop = {});

/// All blocks of two masks by what computes them.
BlockCounts countAll(const MaskMap& map, const MaskMap& other, const base::StopToken& stop);

/// Whether two masks can be compared block by block.
bool comparable(const MaskMap& a, const MaskMap& b);

/// Elements [query, query + rows) x [key, key + columns).
struct ElementGrid {
    std::int64_t query = 0, key = 0;
    int columns = 0, rows = 0;
    std::vector<std::uint8_t> allowed;
    /// Which of map.parts decides: the first that blocks, or among alternatives the first that allows; kNoPart where
    /// all allow, or none does.
    std::vector<std::uint8_t> part;
    std::size_t index(int column, int row) const {
        return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
    }
};
inline constexpr std::uint8_t kNoPart = 255;
ElementGrid elementGrid(const MaskMap& map, std::int64_t query, int rows, std::int64_t key, int columns,
                        const base::StopToken& stop = {});

/// Scores at chosen positions: -infinity where the mask blocks.
struct ScoreGrid {
    std::size_t columns = 0, rows = 0;
    std::vector<float> values;
};
/// Of two masks' scores at one place; -infinity where one of them blocks it.
float scoreDifference(float a, float b);
/// Both ascending, inside the mask.
ScoreGrid scoreGrid(const MaskMap& map, std::span<const std::int64_t> queries, std::span<const std::int64_t> keys,
                    const base::StopToken& stop = {});

/// Allowed elements of one block and its real size.
struct BlockFill {
    std::int64_t allowed = 0, elements = 0;
};
BlockFill blockFill(const MaskMap& map, std::int64_t row, std::int64_t column, const base::StopToken& stop = {});

/// Full, partial or empty (mask_kind) of one block.
std::size_t blockKind(const MaskMap& map, std::int64_t row, std::int64_t column);

} // namespace vitrine::ui
