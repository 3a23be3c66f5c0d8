// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/block_mask_rows.h"

#include <algorithm>

#include "base/integers.h"

namespace vitrine::kernels {

namespace {

/// Runs of columns from runs of rows: rows from top to bottom, touching only columns whose kind changes.
class ColumnSweep {
public:
    ColumnSweep(const BlockMask& mask, std::int64_t batch, std::int64_t head)
        : mask_(mask), batch_(batch), head_(head), openRow_(base::toIndex(mask.shape.keyBlocks()), 0) {}

    void run(std::vector<std::int64_t>& counts, std::vector<BlockRun>& runs) {
        const std::int64_t rows = mask_.shape.queryBlocks();
        std::span<const BlockRun> above;
        for (std::int64_t row = 0; row < rows; ++row) {
            const std::span<const BlockRun> here = mask_.row(batch_, head_, row);
            change(above, here, static_cast<std::int32_t>(row));
            above = here;
        }
        change(above, {}, static_cast<std::int32_t>(rows));
        sortByColumn(counts, runs);
    }

private:
    enum class Kind : std::uint8_t { None, Partial, Full };
    struct Closed {
        std::int32_t column;
        BlockRun run;
    };

    /// Walks the runs of two rows from edge to edge.
    struct Cursor {
        std::span<const BlockRun> runs;
        std::size_t next = 0;

        Kind kind(std::int32_t column) const {
            if (next == runs.size() || column < runs[next].first) {
                return Kind::None;
            }
            return runs[next].full ? Kind::Full : Kind::Partial;
        }
        /// First column after `column` where the kind may change.
        std::int32_t edge(std::int32_t column, std::int32_t end) const {
            if (next == runs.size()) {
                return end;
            }
            return column < runs[next].first ? runs[next].first : runs[next].first + runs[next].count;
        }
        void advance(std::int32_t column) {
            if (next < runs.size() && column >= runs[next].first + runs[next].count) {
                ++next;
            }
        }
    };

    void change(std::span<const BlockRun> above, std::span<const BlockRun> here, std::int32_t row) {
        Cursor before{above};
        Cursor after{here};
        const auto end = static_cast<std::int32_t>(openRow_.size());
        for (std::int32_t column = 0; column < end;) {
            const std::int32_t edge = std::min(before.edge(column, end), after.edge(column, end));
            const Kind was = before.kind(column);
            if (was != after.kind(column)) {
                for (std::int32_t i = column; i < edge; ++i) {
                    if (was != Kind::None) {
                        closed_.push_back(
                            {i, {openRow_[base::toIndex(i)], row - openRow_[base::toIndex(i)], was == Kind::Full}});
                    }
                    openRow_[base::toIndex(i)] = row;
                }
            }
            column = edge;
            before.advance(column);
            after.advance(column);
        }
    }

    /// Stable: runs of a column were closed from top to bottom.
    void sortByColumn(std::vector<std::int64_t>& counts, std::vector<BlockRun>& runs) {
        counts.assign(openRow_.size(), 0);
        for (const Closed& item : closed_) {
            ++counts[base::toIndex(item.column)];
        }
        std::vector<std::int64_t> place(openRow_.size(), 0);
        for (std::size_t i = 1; i < place.size(); ++i) {
            place[i] = place[i - 1] + counts[i - 1];
        }
        runs.resize(closed_.size());
        for (const Closed& item : closed_) {
            runs[base::toIndex(place[base::toIndex(item.column)]++)] = item.run;
        }
    }

    const BlockMask& mask_;
    std::int64_t batch_, head_;
    std::vector<std::int32_t> openRow_; ///< where the kind of a column last changed
    std::vector<Closed> closed_;
};

void addColumns(BlockMask& mask, base::ThreadPool& pool, const base::StopToken& stop) {
    const std::int64_t planes = mask.shape.batch * mask.shape.heads;
    std::vector<std::vector<std::int64_t>> counts(base::toIndex(planes));
    std::vector<std::vector<BlockRun>> runs(base::toIndex(planes));
    pool.parallelFor(planes, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t plane = begin; plane < end; ++plane) {
            base::throwIfStopped(stop);
            ColumnSweep(mask, plane / mask.shape.heads, plane % mask.shape.heads)
                .run(counts[base::toIndex(plane)], runs[base::toIndex(plane)]);
        }
    });
    mask.columnOffsets = {0};
    for (std::size_t plane = 0; plane < counts.size(); ++plane) {
        for (const std::int64_t count : counts[plane]) {
            mask.columnOffsets.push_back(mask.columnOffsets.back() + count);
        }
        mask.columnRuns.insert(mask.columnRuns.end(), runs[plane].begin(), runs[plane].end());
    }
}

} // namespace

void completeFromRows(BlockMask& mask, base::ThreadPool& pool, const base::StopToken& stop) {
    for (const BlockRun& run : mask.rowRuns) {
        (run.full ? mask.full : mask.partial) += run.count;
    }
    const BlockMaskShape& shape = mask.shape;
    mask.empty = shape.batch * shape.heads * shape.queryBlocks() * shape.keyBlocks() - mask.full - mask.partial;
    addColumns(mask, pool, stop);
}

} // namespace vitrine::kernels
