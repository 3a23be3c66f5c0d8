// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What is read from a finished BlockMask: its density, pictures of it, PyTorch's arrays.

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "base/error.h"
#include "base/integers.h"
#include "kernels/program/block_mask.h"
#include "kernels/program/box_walk.h"

namespace vitrine::kernels {

namespace {

/// Allowed elements of masks whose rows are intervals, as a sum over rows.
std::int64_t countIntervals(const IntervalRows& rows, const CaptureBinding& binding, const BlockMaskShape& shape,
                            base::ThreadPool& pool, const base::StopToken& stop) {
    const std::int64_t all = shape.batch * shape.heads * shape.queries;
    constexpr std::int64_t kPiece = 4096;
    std::vector<std::int64_t> sums(base::toIndex((all + kPiece - 1) / kPiece), 0);
    pool.parallelFor(static_cast<std::int64_t>(sums.size()), 1, [&](std::int64_t begin, std::int64_t end, int) {
        Interpreter<double> lows(rows.low, binding);
        Interpreter<double> highs(rows.high, binding);
        for (std::int64_t piece = begin; piece < end; ++piece) {
            base::throwIfStopped(stop);
            for (std::int64_t i = piece * kPiece; i < std::min(all, (piece + 1) * kPiece); ++i) {
                const std::int64_t plane = i / shape.queries;
                const ProgramRow row{plane / shape.heads, plane % shape.heads, i % shape.queries};
                lows.run(row, 0, 1, nullptr);
                highs.run(row, 0, 1, nullptr);
                const std::int64_t first = std::max<std::int64_t>(0, lows.integers()[0]);
                const std::int64_t last = std::min(shape.keys - 1, highs.integers()[0]);
                sums[base::toIndex(piece)] += std::max<std::int64_t>(0, last - first + 1);
            }
        }
    });
    std::int64_t sum = 0;
    for (const std::int64_t part : sums) {
        sum += part;
    }
    return sum;
}

/// Elements of the allowed part of one block row.
std::int64_t countRow(const BlockMask& blocks, std::int64_t plane, std::int64_t row, BoxWalk& walk,
                      const base::StopToken& stop) {
    const BlockMaskShape& shape = blocks.shape;
    const std::int64_t batch = plane / shape.heads;
    const std::int64_t head = plane % shape.heads;
    const std::int64_t query0 = row * shape.queryBlock;
    const std::int64_t query1 = std::min(query0 + shape.queryBlock, shape.queries);
    std::int64_t sum = 0;
    for (const BlockRun& run : blocks.row(batch, head, row)) {
        const std::int64_t key0 = run.first * shape.keyBlock;
        const std::int64_t key1 = std::min((run.first + std::int64_t{run.count}) * shape.keyBlock, shape.keys);
        sum += run.full ? (query1 - query0) * (key1 - key0)
                        : walk.count({batch, batch, head, head, query0, query1 - 1, key0, key1 - 1}, stop);
    }
    return sum;
}

/// Full blocks by their size, the elements of partial ones by the evaluator, a stretch of them at a time.
std::int64_t countOnDevice(const BlockMask& blocks, BlockEvaluator& evaluator, const base::StopToken& stop) {
    constexpr std::size_t kStretch = std::size_t{1} << 20;
    const BlockMaskShape& shape = blocks.shape;
    std::vector<BlockPlace> places;
    std::vector<std::int32_t> counts;
    std::int64_t sum = 0;
    const auto flush = [&] {
        base::throwIfStopped(stop);
        counts.resize(places.size());
        evaluator.count(places, true, counts);
        sum = std::accumulate(counts.begin(), counts.end(), sum);
        places.clear();
    };
    for (std::int64_t line = 0; line < shape.batch * shape.heads * shape.queryBlocks(); ++line) {
        const std::int64_t row = line % shape.queryBlocks();
        const std::int64_t plane = line / shape.queryBlocks();
        const std::int64_t batch = plane / shape.heads;
        const std::int64_t head = plane % shape.heads;
        for (const BlockRun& run : blocks.row(batch, head, row)) {
            if (run.full) {
                sum += areaOf(boxOfBlocks(shape, batch, head, row, row + 1, run.first, run.first + run.count));
                continue;
            }
            for (std::int32_t i = 0; i < run.count; ++i) {
                places.push_back({static_cast<std::int32_t>(batch), static_cast<std::int32_t>(head),
                                  static_cast<std::int32_t>(row), run.first + i});
                if (places.size() == kStretch) {
                    flush();
                }
            }
        }
    }
    if (!places.empty()) {
        flush();
    }
    return sum;
}

/// Which blocks a cell of a picture shows: at least one, in order.
class CellAxis {
public:
    CellAxis(std::int64_t first, std::int64_t end, int cells) {
        const std::int64_t length = end - first;
        for (std::int64_t i = 0; i < cells; ++i) {
            const std::int64_t begin = i * length / cells;
            begins_.push_back(first + begin);
            ends_.push_back(first + std::max(begin + 1, (i + 1) * length / cells));
        }
    }
    std::int64_t begin(std::size_t cell) const { return begins_[cell]; }
    std::int64_t end(std::size_t cell) const { return ends_[cell]; }
    /// First cell that ends after `block`.
    std::size_t firstTouching(std::int64_t block) const {
        return base::toIndex(std::upper_bound(ends_.begin(), ends_.end(), block) - ends_.begin());
    }
    /// First cell that begins at `block` or after it.
    std::size_t firstFrom(std::int64_t block) const {
        return base::toIndex(std::lower_bound(begins_.begin(), begins_.end(), block) - begins_.begin());
    }
    std::size_t size() const { return begins_.size(); }

private:
    std::vector<std::int64_t> begins_, ends_;
};

/// Counts of one kind over the cells of a row of the picture: whole cells as differences, cut ones one by one.
class CellCounter {
public:
    explicit CellCounter(const CellAxis& axis) : axis_(axis), whole_(axis.size() + 1, 0), cut_(axis.size(), 0) {}

    void add(std::int64_t begin, std::int64_t end) {
        const std::size_t stop = axis_.firstFrom(end);
        std::size_t cell = axis_.firstTouching(begin);
        const std::size_t inner = std::min(stop, axis_.firstFrom(begin));
        for (; cell < inner; ++cell) {
            cut_[cell] += std::min(end, axis_.end(cell)) - begin;
        }
        std::size_t cutEnd = stop;
        while (cutEnd > cell && axis_.end(cutEnd - 1) > end) {
            --cutEnd;
            cut_[cutEnd] += end - axis_.begin(cutEnd);
        }
        whole_[cell] += 1;
        whole_[cutEnd] -= 1;
    }

    template <class Use> void take(const Use& use) {
        std::int64_t covering = 0;
        for (std::size_t cell = 0; cell < cut_.size(); ++cell) {
            covering += whole_[cell];
            use(cell, cut_[cell] + covering * (axis_.end(cell) - axis_.begin(cell)));
        }
        std::fill(whole_.begin(), whole_.end(), 0);
        std::fill(cut_.begin(), cut_.end(), 0);
    }

private:
    const CellAxis& axis_;
    std::vector<std::int64_t> whole_;
    std::vector<std::int64_t> cut_;
};

/// One side of PyTorch's arrays: members in order, then the blocks that are not.
class DenseLines {
public:
    DenseLines(std::vector<std::int32_t>& counts, std::vector<std::int32_t>& indices, std::int64_t length)
        : counts_(counts), indices_(indices), member_(base::toIndex(length)) {}

    void clear() { std::fill(member_.begin(), member_.end(), 0); }
    void mark(std::int64_t block) { member_[base::toIndex(block)] = 1; }
    void append() {
        const std::size_t before = indices_.size();
        for (const int wanted : {1, 0}) {
            for (std::size_t i = 0; i < member_.size(); ++i) {
                if (member_[i] == wanted) {
                    indices_.push_back(static_cast<std::int32_t>(i));
                }
            }
            if (wanted == 1) {
                counts_.push_back(static_cast<std::int32_t>(indices_.size() - before));
            }
        }
    }

private:
    std::vector<std::int32_t>& counts_;
    std::vector<std::int32_t>& indices_;
    std::vector<std::uint8_t> member_;
};

} // namespace

double elementDensity(const BlockMask& blocks, const Program& mask, const CaptureBinding& binding,
                      base::ThreadPool& pool, const base::StopToken& stop, BlockEvaluator* evaluator) {
    const BlockMaskShape& shape = blocks.shape;
    const std::int64_t planes = shape.batch * shape.heads;
    std::int64_t allowed = 0;
    if (const std::optional<IntervalRows> rows = intervalRows(mask)) {
        allowed = countIntervals(*rows, binding, shape, pool, stop);
    } else if (evaluator != nullptr && isWorth(*evaluator, shape, blocks.partial)) {
        allowed = countOnDevice(blocks, *evaluator, stop);
    } else {
        const IntervalAnalysis analysis(mask, binding);
        const std::int64_t blockRows = shape.queryBlocks();
        std::vector<std::int64_t> sums(base::toIndex(planes * blockRows), 0);
        pool.parallelFor(planes * blockRows, 1, [&](std::int64_t begin, std::int64_t end, int) {
            BoxWalk walk(mask, binding, analysis);
            for (std::int64_t i = begin; i < end; ++i) {
                base::throwIfStopped(stop);
                sums[base::toIndex(i)] = countRow(blocks, i / blockRows, i % blockRows, walk, stop);
            }
        });
        for (const std::int64_t part : sums) {
            allowed += part;
        }
    }
    return static_cast<double>(allowed) /
           (static_cast<double>(planes) * static_cast<double>(shape.queries) * static_cast<double>(shape.keys));
}

std::vector<BlockCell> blockCells(const BlockMask& mask, std::int64_t batch, std::int64_t head, std::int64_t q0,
                                  std::int64_t q1, std::int64_t k0, std::int64_t k1, int columns, int rows) {
    q0 = std::clamp<std::int64_t>(q0, 0, mask.shape.queryBlocks());
    q1 = std::clamp(q1, q0, mask.shape.queryBlocks());
    k0 = std::clamp<std::int64_t>(k0, 0, mask.shape.keyBlocks());
    k1 = std::clamp(k1, k0, mask.shape.keyBlocks());
    std::vector<BlockCell> cells(base::toIndex(std::max(0, columns)) * base::toIndex(std::max(0, rows)));
    if (cells.empty() || q0 == q1 || k0 == k1) {
        return cells;
    }
    const CellAxis across(k0, k1, columns);
    const CellAxis down(q0, q1, rows);
    CellCounter full(across);
    CellCounter partial(across);
    for (std::size_t y = 0; y < down.size(); ++y) {
        for (std::int64_t row = down.begin(y); row < down.end(y); ++row) {
            for (const BlockRun& run : mask.row(batch, head, row)) {
                const std::int64_t begin = std::max<std::int64_t>(run.first, k0);
                const std::int64_t end = std::min<std::int64_t>(run.first + std::int64_t{run.count}, k1);
                if (begin < end) {
                    (run.full ? full : partial).add(begin, end);
                }
            }
        }
        BlockCell* line = cells.data() + y * across.size();
        full.take([&](std::size_t x, std::int64_t count) { line[x].full = count; });
        partial.take([&](std::size_t x, std::int64_t count) { line[x].partial = count; });
        for (std::size_t x = 0; x < across.size(); ++x) {
            line[x].empty =
                (down.end(y) - down.begin(y)) * (across.end(x) - across.begin(x)) - line[x].full - line[x].partial;
        }
    }
    return cells;
}

DenseBlockMask denseBlockMask(const BlockMask& mask, bool edgeBlocksArePartial, std::uint64_t limitBytes) {
    const BlockMaskShape& shape = mask.shape;
    const double lines = static_cast<double>(shape.batch) * static_cast<double>(shape.heads);
    const double area = static_cast<double>(shape.queryBlocks()) * static_cast<double>(shape.keyBlocks());
    const double bytes =
        lines * 2 * 4 * (2 * area + static_cast<double>(shape.queryBlocks()) + static_cast<double>(shape.keyBlocks()));
    if (bytes > static_cast<double>(limitBytes)) {
        throw base::BadInput(
            fmt::format("block_size: PyTorch's dense arrays of this mask take {:.0f} MiB, over the limit "
                        "of {} MiB; choose larger blocks",
                        bytes / 1048576, limitBytes / 1048576));
    }
    DenseBlockMask out;
    const bool cutRows = edgeBlocksArePartial && shape.queries % shape.queryBlock != 0;
    const bool cutColumns = edgeBlocksArePartial && shape.keys % shape.keyBlock != 0;
    const auto lastRow = shape.queryBlocks() - 1;
    const auto lastColumn = shape.keyBlocks() - 1;
    const auto isFull = [&](const BlockRun& run, std::int64_t row, std::int64_t column) {
        return run.full && !(cutRows && row == lastRow) && !(cutColumns && column == lastColumn);
    };
    DenseLines kv(out.kvNumBlocks, out.kvIndices, shape.keyBlocks());
    DenseLines fullKv(out.fullKvNumBlocks, out.fullKvIndices, shape.keyBlocks());
    DenseLines q(out.qNumBlocks, out.qIndices, shape.queryBlocks());
    DenseLines fullQ(out.fullQNumBlocks, out.fullQIndices, shape.queryBlocks());
    const auto add = [&](std::span<const BlockRun> runs, std::int64_t line, bool lineIsRow, DenseLines& partial,
                         DenseLines& full) {
        partial.clear();
        full.clear();
        for (const BlockRun& run : runs) {
            for (std::int64_t i = run.first; i < run.first + std::int64_t{run.count}; ++i) {
                (isFull(run, lineIsRow ? line : i, lineIsRow ? i : line) ? full : partial).mark(i);
            }
        }
        partial.append();
        full.append();
    };
    for (std::int64_t plane = 0; plane < shape.batch * shape.heads; ++plane) {
        for (std::int64_t row = 0; row <= lastRow; ++row) {
            add(mask.row(plane / shape.heads, plane % shape.heads, row), row, true, kv, fullKv);
        }
        for (std::int64_t column = 0; column <= lastColumn; ++column) {
            add(mask.column(plane / shape.heads, plane % shape.heads, column), column, false, q, fullQ);
        }
    }
    return out;
}

} // namespace vitrine::kernels
