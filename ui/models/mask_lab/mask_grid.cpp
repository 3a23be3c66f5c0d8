// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_grid.h"

#include <algorithm>

#include "base/integers.h"
#include "kernels/program/box_walk.h"

namespace vitrine::ui {

namespace {

using kernels::BlockRun;

/// Counts of one row of cells: cut cells one by one, those that a run covers whole as differences.
class CellRow {
public:
    explicit CellRow(std::span<const std::int64_t> edges)
        : edges_(edges), cut_(edges.size() - 1, BlockCounts{}), cover_(edges.size(), BlockCounts{}) {}

    void add(std::size_t kind, std::int64_t begin, std::int64_t end) {
        begin = std::max(begin, edges_.front());
        end = std::min(end, edges_.back());
        if (begin >= end) {
            return;
        }
        const std::size_t first = cellOf(begin);
        const std::size_t last = cellOf(end - 1);
        if (first == last) {
            cut_[first][kind] += end - begin;
            return;
        }
        cut_[first][kind] += edges_[first + 1] - begin;
        cut_[last][kind] += end - edges_[last];
        ++cover_[first + 1][kind];
        --cover_[last][kind];
    }

    /// Moves the counts of `height` block rows out.
    void take(BlockCounts* out, std::int64_t height) {
        BlockCounts covering{};
        for (std::size_t x = 0; x < cut_.size(); ++x) {
            const std::int64_t width = edges_[x + 1] - edges_[x];
            std::int64_t rest = width * height;
            for (std::size_t kind = 0; kind < covering.size(); ++kind) {
                covering[kind] += cover_[x][kind];
                out[x][kind] = cut_[x][kind] + covering[kind] * width;
                rest -= out[x][kind];
            }
            out[x][mask_kind::kEmpty] = rest; // kNeither is the same place
        }
        std::fill(cut_.begin(), cut_.end(), BlockCounts{});
        std::fill(cover_.begin(), cover_.end(), BlockCounts{});
    }

private:
    std::size_t cellOf(std::int64_t block) const {
        return base::toIndex(std::upper_bound(edges_.begin(), edges_.end(), block) - edges_.begin()) - 1;
    }

    std::span<const std::int64_t> edges_;
    std::vector<BlockCounts> cut_, cover_;
};

std::int64_t endOf(const BlockRun& run) {
    return std::int64_t{run.first} + run.count;
}

/// The runs of a row that reach beyond a block: rows can have many.
std::span<const BlockRun> runsFrom(std::span<const BlockRun> runs, std::int64_t block) {
    const auto first = std::upper_bound(runs.begin(), runs.end(), block,
                                        [](std::int64_t wanted, const BlockRun& run) { return wanted < endOf(run); });
    return {first, runs.end()};
}

void addRow(std::span<const BlockRun> runs, std::int64_t end, CellRow& cells) {
    for (const BlockRun& run : runs) {
        if (run.first >= end) {
            return;
        }
        cells.add(run.full ? mask_kind::kFull : mask_kind::kPartial, run.first, endOf(run));
    }
}

/// Walks two rows from edge to edge.
void addDifference(std::span<const BlockRun> a, std::span<const BlockRun> b, std::int64_t begin, std::int64_t end,
                   CellRow& cells) {
    std::size_t i = 0;
    std::size_t j = 0;
    while (begin < end) {
        while (i < a.size() && endOf(a[i]) <= begin) {
            ++i;
        }
        while (j < b.size() && endOf(b[j]) <= begin) {
            ++j;
        }
        const bool inA = i < a.size() && a[i].first <= begin;
        const bool inB = j < b.size() && b[j].first <= begin;
        std::int64_t edge = end;
        if (i < a.size()) {
            edge = std::min(edge, inA ? endOf(a[i]) : std::int64_t{a[i].first});
        }
        if (j < b.size()) {
            edge = std::min(edge, inB ? endOf(b[j]) : std::int64_t{b[j].first});
        }
        if (inA || inB) {
            cells.add(inA && inB ? mask_kind::kBoth : inA ? mask_kind::kOnlyA : mask_kind::kOnlyB, begin, edge);
        }
        begin = edge;
    }
}

} // namespace

bool comparable(const MaskMap& a, const MaskMap& b) {
    const kernels::BlockMaskShape& x = a.shape();
    const kernels::BlockMaskShape& y = b.shape();
    return x.queries == y.queries && x.keys == y.keys && x.queryBlock == y.queryBlock && x.keyBlock == y.keyBlock;
}

BlockGrid countBlocks(const MaskMap& map, const MaskMap* other, std::span<const std::int64_t> columnEdges,
                      std::span<const std::int64_t> rowEdges, const base::StopToken& stop) {
    BlockGrid grid;
    if (columnEdges.size() < 2 || rowEdges.size() < 2) {
        return grid;
    }
    grid.columns = columnEdges.size() - 1;
    grid.rows = rowEdges.size() - 1;
    grid.cells.resize(grid.columns * grid.rows);
    CellRow cells(columnEdges);
    const std::int64_t begin = columnEdges.front();
    const std::int64_t end = columnEdges.back();
    for (std::size_t y = 0; y < grid.rows; ++y) {
        base::throwIfStopped(stop);
        for (std::int64_t row = rowEdges[y]; row < rowEdges[y + 1]; ++row) {
            const std::span<const BlockRun> runs = runsFrom(map.blocks->row(map.batch, map.head, row), begin);
            if (other == nullptr) {
                addRow(runs, end, cells);
            } else {
                addDifference(runs, runsFrom(other->blocks->row(other->batch, other->head, row), begin), begin, end,
                              cells);
            }
        }
        cells.take(grid.cells.data() + y * grid.columns, rowEdges[y + 1] - rowEdges[y]);
    }
    return grid;
}

BlockCounts countAll(const MaskMap& map, const MaskMap& other, const base::StopToken& stop) {
    const std::array<std::int64_t, 2> columns{0, map.shape().keyBlocks()};
    const std::array<std::int64_t, 2> rows{0, map.shape().queryBlocks()};
    return countBlocks(map, &other, columns, rows, stop).cells.front();
}

std::size_t blockKind(const MaskMap& map, std::int64_t row, std::int64_t column) {
    const std::span<const BlockRun> runs = runsFrom(map.blocks->row(map.batch, map.head, row), column);
    if (runs.empty() || runs.front().first > column) {
        return mask_kind::kEmpty;
    }
    return runs.front().full ? mask_kind::kFull : mask_kind::kPartial;
}

BlockFill blockFill(const MaskMap& map, std::int64_t row, std::int64_t column, const base::StopToken& stop) {
    const kernels::BlockMaskShape& shape = map.shape();
    const kernels::ProgramBox box{map.batch,
                                  map.batch,
                                  map.head,
                                  map.head,
                                  row * shape.queryBlock,
                                  std::min((row + 1) * shape.queryBlock, shape.queries) - 1,
                                  column * shape.keyBlock,
                                  std::min((column + 1) * shape.keyBlock, shape.keys) - 1};
    BlockFill fill;
    fill.elements = (box.queryHigh - box.queryLow + 1) * (box.keyHigh - box.keyLow + 1);
    switch (blockKind(map, row, column)) {
    case mask_kind::kFull:
        fill.allowed = fill.elements;
        break;
    case mask_kind::kPartial:
        fill.allowed = kernels::BoxWalk(map.mask->program, map.mask->binding, *map.analysis).count(box, stop);
        break;
    default:
        break;
    }
    return fill;
}

} // namespace vitrine::ui
