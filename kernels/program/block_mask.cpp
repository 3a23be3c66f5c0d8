// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/block_mask.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/integers.h"
#include "kernels/program/block_mask_rows.h"
#include "kernels/program/box_walk.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kLongestSide = std::int64_t{1} << 30;
constexpr std::int64_t kMostLines = std::int64_t{1} << 26; ///< block rows or columns over all heads
constexpr std::int64_t kMostRuns = std::int64_t{1} << 31;

void checkShape(const BlockMaskShape& shape) {
    const auto require = [](std::int64_t value, std::string_view name, std::int64_t most) {
        if (value <= 0 || value > most) {
            throw base::BadInput(fmt::format("{}: {} is outside 1 to {}; give a size in it", name, value, most));
        }
    };
    require(shape.queries, "q_len", kLongestSide);
    require(shape.keys, "kv_len", kLongestSide);
    require(shape.queryBlock, "block_size", kLongestSide);
    require(shape.keyBlock, "block_size", kLongestSide);
    require(shape.batch, "batch", kMostLines);
    require(shape.heads, "heads", kMostLines);
    const std::int64_t lines = std::max(shape.queryBlocks(), shape.keyBlocks());
    if (shape.batch * shape.heads > kMostLines / lines) {
        throw base::BadInput(fmt::format(
            "block_size: {} x {} masks of {} blocks a side are too many; choose larger blocks or fewer heads",
            shape.batch, shape.heads, lines));
    }
}

/// Runs of the block rows of one strip.
struct Strip {
    std::vector<std::vector<BlockRun>> rows;
};

void appendRun(std::vector<BlockRun>& runs, const BlockRun& run) {
    if (!runs.empty() && runs.back().full == run.full && runs.back().first + runs.back().count == run.first) {
        runs.back().count += run.count;
    } else {
        runs.push_back(run);
    }
}

/// Fills strips of block rows; one for each thread.
class StripBuilder {
public:
    /// Without `looks`, blocks that analysis leaves undecided stay partial.
    StripBuilder(const BlockMaskShape& shape, const Program& mask, const CaptureBinding& binding,
                 const IntervalAnalysis& analysis, bool looks)
        : shape_(shape), walk_(mask, binding, analysis), looks_(looks) {}

    void build(std::int64_t batch, std::int64_t head, std::int64_t begin, std::int64_t end, Strip& strip,
               const base::StopToken& stop) {
        batch_ = batch;
        head_ = head;
        begin_ = begin;
        strip_ = &strip;
        stop_ = &stop;
        strip.rows.assign(base::toIndex(end - begin), {});
        visit(begin, end, 0, shape_.keyBlocks());
    }

private:
    /// Columns from left to right, so that runs of a row arrive in order.
    void visit(std::int64_t row0, std::int64_t row1, std::int64_t column0, std::int64_t column1) {
        const ProgramBox box = boxOfBlocks(shape_, batch_, head_, row0, row1, column0, column1);
        const MaskVerdict verdict = walk_.verdict(box);
        if (verdict == MaskVerdict::Empty) {
            return;
        }
        if (verdict == MaskVerdict::Full) {
            append(row0, row1, column0, column1, true);
            return;
        }
        const std::int64_t height = row1 - row0;
        const std::int64_t width = column1 - column0;
        if (height == 1 && width == 1) {
            base::throwIfStopped(*stop_);
            const MaskVerdict exact = looks_ ? walk_.classifyUndecided(box, *stop_) : MaskVerdict::Undecided;
            if (exact != MaskVerdict::Empty) {
                append(row0, row1, column0, column1, exact == MaskVerdict::Full);
            }
            return;
        }
        if (width >= height) {
            const std::int64_t middle = column0 + halfOf(width);
            visit(row0, row1, column0, middle);
            visit(row0, row1, middle, column1);
        } else {
            const std::int64_t middle = row0 + halfOf(height);
            visit(row0, middle, column0, column1);
            visit(middle, row1, column0, column1);
        }
    }

    void append(std::int64_t row0, std::int64_t row1, std::int64_t column0, std::int64_t column1, bool full) {
        const BlockRun run{static_cast<std::int32_t>(column0), static_cast<std::int32_t>(column1 - column0), full};
        for (std::int64_t row = row0; row < row1; ++row) {
            appendRun(strip_->rows[base::toIndex(row - begin_)], run);
        }
    }

    BlockMaskShape shape_;
    BoxWalk walk_;
    bool looks_;
    std::int64_t batch_ = 0, head_ = 0, begin_ = 0;
    Strip* strip_ = nullptr;
    const base::StopToken* stop_ = nullptr;
};

/// Looks into the partial blocks of strips, which analysis left undecided: `kindOf(i)` for the i-th of them.
class Undecided {
public:
    Undecided(const BlockMaskShape& shape, std::vector<Strip>& strips, std::int64_t perPlane, std::int64_t height)
        : shape_(shape), strips_(strips) {
        for (std::size_t i = 0; i < strips.size(); ++i) {
            const auto strip = static_cast<std::int64_t>(i);
            const std::int64_t plane = strip / perPlane;
            for (std::size_t row = 0; row < strips[i].rows.size(); ++row) {
                add(plane, strip % perPlane * height + static_cast<std::int64_t>(row), strips[i].rows[row]);
            }
        }
    }

    std::span<const BlockPlace> places() const { return places_; }
    bool worth(const BlockEvaluator& evaluator) const {
        return isWorth(evaluator, shape_, static_cast<std::int64_t>(places_.size()));
    }

    /// In the order of places().
    void resolve(std::span<const MaskVerdict> verdicts) {
        std::size_t next = 0;
        for (Strip& strip : strips_) {
            for (std::vector<BlockRun>& runs : strip.rows) {
                std::vector<BlockRun> resolved;
                for (const BlockRun& run : runs) {
                    if (run.full) {
                        appendRun(resolved, run);
                        continue;
                    }
                    for (std::int32_t i = 0; i < run.count; ++i) {
                        const MaskVerdict verdict = verdicts[next++];
                        if (verdict != MaskVerdict::Empty) {
                            appendRun(resolved, {run.first + i, 1, verdict == MaskVerdict::Full});
                        }
                    }
                }
                runs = std::move(resolved);
            }
        }
    }

private:
    void add(std::int64_t plane, std::int64_t row, const std::vector<BlockRun>& runs) {
        for (const BlockRun& run : runs) {
            for (std::int32_t i = 0; !run.full && i < run.count; ++i) {
                places_.push_back({static_cast<std::int32_t>(plane / shape_.heads),
                                   static_cast<std::int32_t>(plane % shape_.heads), static_cast<std::int32_t>(row),
                                   run.first + i});
            }
        }
    }

    const BlockMaskShape& shape_;
    std::vector<Strip>& strips_;
    std::vector<BlockPlace> places_;
};

ProgramBox boxOf(const BlockMaskShape& shape, const BlockPlace& place) {
    return boxOfBlocks(shape, place.batch, place.head, place.row, place.row + 1, place.column, place.column + 1);
}

/// By the evaluator where the blocks are worth it, else by the pool.
std::vector<MaskVerdict> lookInto(const Undecided& undecided, const BlockMaskShape& shape, BlockEvaluator& evaluator,
                                  const Program& mask, const CaptureBinding& binding, const IntervalAnalysis& analysis,
                                  base::ThreadPool& pool, const base::StopToken& stop) {
    const std::span<const BlockPlace> places = undecided.places();
    const auto count = static_cast<std::int64_t>(places.size());
    std::vector<MaskVerdict> verdicts(places.size(), MaskVerdict::Undecided);
    if (!undecided.worth(evaluator)) {
        constexpr std::int64_t kGrain = 16;
        pool.parallelFor(count, kGrain, [&](std::int64_t begin, std::int64_t end, int) {
            BoxWalk walk(mask, binding, analysis);
            for (std::int64_t i = begin; i < end; ++i) {
                verdicts[base::toIndex(i)] = walk.classifyUndecided(boxOf(shape, places[base::toIndex(i)]), stop);
            }
        });
        return verdicts;
    }
    std::vector<std::int32_t> counts(places.size());
    evaluator.count(places, false, counts);
    for (std::size_t i = 0; i < places.size(); ++i) {
        verdicts[i] = counts[i] == 0                                 ? MaskVerdict::Empty
                      : counts[i] == areaOf(boxOf(shape, places[i])) ? MaskVerdict::Full
                                                                     : MaskVerdict::Undecided;
    }
    return verdicts;
}

void joinRows(BlockMask& mask, const std::vector<Strip>& strips) {
    std::int64_t total = 0;
    mask.rowOffsets = {0};
    for (const Strip& strip : strips) {
        for (const std::vector<BlockRun>& runs : strip.rows) {
            total += static_cast<std::int64_t>(runs.size());
            mask.rowOffsets.push_back(total);
        }
    }
    if (total > kMostRuns) {
        throw base::BadInput("block_size: the mask has more than 2^31 runs of blocks; choose larger blocks");
    }
    mask.rowRuns.reserve(base::toIndex(total));
    for (const Strip& strip : strips) {
        for (const std::vector<BlockRun>& runs : strip.rows) {
            mask.rowRuns.insert(mask.rowRuns.end(), runs.begin(), runs.end());
        }
    }
}

} // namespace

std::span<const BlockRun> BlockMask::row(std::int64_t batch, std::int64_t head, std::int64_t block) const {
    const std::size_t index = base::toIndex(
        ((shape.batch == 1 ? 0 : batch) * shape.heads + (shape.heads == 1 ? 0 : head)) * shape.queryBlocks() + block);
    return std::span(rowRuns).subspan(base::toIndex(rowOffsets[index]),
                                      base::toIndex(rowOffsets[index + 1] - rowOffsets[index]));
}

std::span<const BlockRun> BlockMask::column(std::int64_t batch, std::int64_t head, std::int64_t block) const {
    const std::size_t index = base::toIndex(
        ((shape.batch == 1 ? 0 : batch) * shape.heads + (shape.heads == 1 ? 0 : head)) * shape.keyBlocks() + block);
    return std::span(columnRuns)
        .subspan(base::toIndex(columnOffsets[index]), base::toIndex(columnOffsets[index + 1] - columnOffsets[index]));
}

std::uint64_t BlockMask::metadataBytes() const {
    return (rowOffsets.size() + columnOffsets.size()) * sizeof(std::int64_t) +
           (rowRuns.size() + columnRuns.size()) * sizeof(BlockRun);
}

double BlockMask::blockSparsity() const {
    return 1 - static_cast<double>(full + partial) / static_cast<double>(full + partial + empty);
}

double BlockMask::fullShare() const {
    return full + partial == 0 ? 0 : static_cast<double>(full) / static_cast<double>(full + partial);
}

BlockMaskShape collapsedShape(const Program& mask, BlockMaskShape shape) {
    const unsigned inputs = inputsOf(mask)[base::toIndex(mask.result)];
    shape.batch = (inputs & kOnBatch) != 0 ? shape.batch : 1;
    shape.heads = (inputs & kOnHead) != 0 ? shape.heads : 1;
    return shape;
}

BlockMask buildBlockMask(const Program& mask, const CaptureBinding& binding, BlockMaskShape shape,
                         base::ThreadPool& pool, base::ProgressSink* progress, const base::StopToken& stop,
                         BlockEvaluator* evaluator) {
    if (!mask.isMask()) {
        throw base::BadInput("mask: the program gives a number, not a boolean; compare it, or pass it as the score");
    }
    shape = collapsedShape(mask, shape);
    checkShape(shape);
    BlockMask out;
    out.shape = shape;
    const std::int64_t blockRows = shape.queryBlocks();
    const std::int64_t height = std::max<std::int64_t>(1, blockRows / 64);
    const std::int64_t perPlane = (blockRows + height - 1) / height;
    const std::int64_t planes = shape.batch * shape.heads;
    std::vector<Strip> strips(base::toIndex(planes * perPlane));
    const IntervalAnalysis analysis(mask, binding);
    std::mutex progressMutex;
    std::uint64_t done = 0;
    pool.parallelFor(static_cast<std::int64_t>(strips.size()), 1, [&](std::int64_t begin, std::int64_t end, int) {
        StripBuilder builder(shape, mask, binding, analysis, evaluator == nullptr);
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t plane = i / perPlane;
            const std::int64_t first = i % perPlane * height;
            builder.build(plane / shape.heads, plane % shape.heads, first, std::min(first + height, blockRows),
                          strips[base::toIndex(i)], stop);
            if (progress != nullptr) {
                const std::scoped_lock lock(progressMutex);
                progress->progress("Building the block mask", ++done, strips.size());
            }
        }
    });
    if (evaluator != nullptr) {
        Undecided undecided(shape, strips, perPlane, height);
        undecided.resolve(lookInto(undecided, shape, *evaluator, mask, binding, analysis, pool, stop));
    }
    joinRows(out, strips);
    completeFromRows(out, pool, stop);
    return out;
}

} // namespace vitrine::kernels
