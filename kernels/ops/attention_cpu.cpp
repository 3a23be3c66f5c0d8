// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "kernels/ops/flex_rows.h"
#include "kernels/ops/floats.h"
#include "kernels/ops/kv_pages.h"
#include "kernels/ops/kv_rows.h"

namespace vitrine::kernels {

namespace {

/// Keys are visited in blocks that start at multiples of this logical position, so that a row's sums run in the same
/// order whichever rows share its task.
constexpr std::int64_t kKeyBlock = 32;
constexpr std::int64_t kMaxQueries = 16;                                  ///< (row, head) pairs of one task
constexpr std::int64_t kNoKey = std::numeric_limits<std::int32_t>::max(); ///< no sequence has a key here

/// One (row, head).
template <class C> struct Query {
    std::int64_t row = 0;
    ProgramRow at;
    FlexReach reach;
    const C* q = nullptr;
    FlexSoftmax<C> softmax;
};

/// Rows of one sequence that share a key head.
struct Segment {
    std::int64_t sequence = 0;
    std::int64_t rowBegin = 0;
    std::int64_t rowEnd = 0;
    std::int64_t kvHead = 0;
    std::int64_t newRow = 0;   ///< row of newK at newBegin
    std::int64_t newBegin = 0; ///< positions from here on are read from newK and newV
    std::int64_t firstKey = 0; ///< positions that exist
    std::int64_t lastKey = -1;
};

/// A block of keys or values as C.
template <class C> struct Tile {
    const C* data = nullptr;
    std::int64_t stride = 0;
};

template <class C> class Task {
public:
    Task(const Attention& op, const KvPages& pages, const FlexPrograms& programs, SimdLevel simd)
        : op_(op), pages_(pages), simd_(simd), scores_(simd, programs, op.scale, op.q.shape[2], kNoKey) {}

    void run(const Segment& segment) {
        const std::int64_t group = op_.q.shape[1] / op_.cache.keys.shape[2];
        const std::int64_t queries = (segment.rowEnd - segment.rowBegin) * group;
        for (std::int64_t begin = 0; begin < queries; begin += kMaxQueries) {
            const std::int64_t count = std::min(kMaxQueries, queries - begin);
            for (std::int64_t i = 0; i < count; ++i) {
                start(segment, group, begin + i, queries_[i], i);
            }
            visitKeys(segment, count);
            for (std::int64_t i = 0; i < count; ++i) {
                finish(queries_[i]);
            }
        }
    }

private:
    void start(const Segment& segment, std::int64_t group, std::int64_t index, Query<C>& query, std::int64_t slot) {
        const std::int64_t dim = op_.q.shape[2];
        query.row = segment.rowBegin + index / group;
        query.at = {segment.sequence, segment.kvHead * group + index % group,
                    op_.positions.template as<const std::int32_t>()[query.row]};
        if (slot > 0 && queries_[slot - 1].row == query.row && !scores_.mask().perHead()) {
            query.reach = queries_[slot - 1].reach;
        } else {
            query.reach = scores_.mask().reach(query.at);
            query.reach.low = std::max(query.reach.low, segment.firstKey);
            query.reach.high = std::min(query.reach.high, segment.lastKey);
        }
        C* q = q_ + slot * kMaxHeadDim;
        loadFloats(op_.q.dtype, op_.q.data, query.row * op_.q.stride0() + query.at.head * dim, dim, q);
        query.q = q;
        C sink = 0;
        if (!op_.sinks.empty()) {
            loadFloats(op_.sinks.dtype, op_.sinks.data, query.at.head, 1, &sink);
        }
        query.softmax.start(op_.sinks.empty() ? nullptr : &sink, dim, results_ + slot * kMaxHeadDim);
    }

    void visitKeys(const Segment& segment, std::int64_t count) {
        std::int64_t lo = std::numeric_limits<std::int64_t>::max();
        std::int64_t hi = -1;
        for (std::int64_t i = 0; i < count; ++i) {
            if (queries_[i].reach.low <= queries_[i].reach.high) {
                lo = std::min(lo, queries_[i].reach.low);
                hi = std::max(hi, queries_[i].reach.high);
            }
        }
        while (lo <= hi) {
            const std::int64_t end = std::min(hi + 1, (lo / kKeyBlock + 1) * kKeyBlock);
            const Tile<C> keys = tile(segment, lo, end, op_.cache.keys, op_.newK, true, keyTile_);
            const Tile<C> values = tile(segment, lo, end, op_.cache.values, op_.newV, false, valueTile_);
            for (std::int64_t i = 0; i < count; ++i) {
                visitBlock(queries_[i], lo, end, keys, values);
            }
            lo = end;
        }
    }

    /// Positions [begin, end) as rows of C: where they are, or copied.
    Tile<C> tile(const Segment& segment, std::int64_t begin, std::int64_t end, const TensorView& pool,
                 const TensorView& added, bool isKey, C* buffer) {
        const std::int64_t dim = op_.q.shape[2];
        std::int64_t position = begin;
        while (position < end) {
            std::int64_t run = 1;
            std::int64_t at = 0;
            std::int64_t stride = 0;
            const float* scales = nullptr;
            const bool fromNew = position >= segment.newBegin;
            const TensorView& from = fromNew ? added : pool;
            if (fromNew) {
                stride = added.stride0();
                at = (segment.newRow + position - segment.newBegin) * stride;
                run = end - position;
            } else {
                const KvPages::Slot slot = pages_.slot(segment.sequence, position);
                stride = pages_.tokenStride();
                at = isKey ? slot.key : slot.value;
                run = std::min({slot.run, end - position, segment.newBegin - position});
                if (op_.cache.quantized()) {
                    const std::int64_t scale = isKey ? slot.keyScale : slot.valueScale;
                    scales = (isKey ? op_.cache.keyScales : op_.cache.valueScales).template as<const float>() + scale +
                             segment.kvHead * pages_.scaleStride();
                }
            }
            at += segment.kvHead * dim;
            const bool asIs = from.dtype == (sizeof(C) == sizeof(float) ? DType::F32 : DType::F64);
            if (asIs && run == end - begin) {
                return {from.template as<const C>() + at, stride};
            }
            for (std::int64_t i = 0; i < run; ++i) {
                C* to = buffer + (position - begin + i) * dim;
                if (scales != nullptr) {
                    const std::uint8_t* row = from.template as<const std::uint8_t>() + at + i * stride;
                    dequantizeKvRow(from.dtype, row, scales[i], dim, to);
                } else {
                    loadFloats(from.dtype, from.data, at + i * stride, dim, to);
                }
            }
            position += run;
        }
        return {buffer, dim};
    }

    void visitBlock(Query<C>& query, std::int64_t begin, std::int64_t end, const Tile<C>& keys, const Tile<C>& values) {
        const std::int64_t low = std::max(begin, query.reach.low);
        const auto count = static_cast<int>(std::min(end, query.reach.high + 1) - low);
        if (count <= 0) {
            return;
        }
        C scores[kKeyBlock];
        const C* key = keys.data + (low - begin) * keys.stride;
        if (scores_.compute(query.at, query.reach, query.q, key, keys.stride, low, count, scores) !=
            FlexAllowed::None) {
            query.softmax.add(simd_, scores, count, values.data + (low - begin) * values.stride, values.stride,
                              op_.q.shape[2]);
        }
    }

    void finish(Query<C>& query) {
        const std::int64_t dim = op_.q.shape[2];
        const C lse = query.softmax.finish(dim);
        storeFloats(op_.out.dtype, query.softmax.out, dim, op_.out.data,
                    query.row * op_.out.stride0() + query.at.head * dim);
        if (!op_.lse.empty()) {
            op_.lse.template as<float>()[query.row * op_.q.shape[1] + query.at.head] = static_cast<float>(lse);
        }
    }

    const Attention& op_;
    const KvPages& pages_;
    SimdLevel simd_;
    FlexRowScores<C> scores_;
    Query<C> queries_[kMaxQueries];
    C q_[kMaxQueries * kMaxHeadDim];
    C results_[kMaxQueries * kMaxHeadDim];
    C keyTile_[kKeyBlock * kMaxHeadDim];
    C valueTile_[kKeyBlock * kMaxHeadDim];
};

Segment segmentAt(const Attention& op, const KvPages& pages, std::int64_t row, std::int64_t rowEnd,
                  std::int64_t kvHead) {
    const std::int32_t* offsets = op.offsets.as<const std::int32_t>();
    const std::int32_t* positions = op.positions.as<const std::int32_t>();
    const std::int32_t* behind = std::upper_bound(offsets, offsets + pages.sequences() + 1, static_cast<int>(row));
    Segment segment;
    segment.sequence = behind - offsets - 1;
    if (segment.sequence < 0 || segment.sequence >= pages.sequences()) {
        throw base::Internal("Attention: offsets: a row belongs to no sequence");
    }
    segment.rowBegin = row;
    segment.rowEnd = std::min<std::int64_t>(rowEnd, *behind);
    segment.kvHead = kvHead;
    segment.firstKey = pages.first(segment.sequence);
    segment.lastKey = pages.end(segment.sequence) - 1;
    segment.newBegin = std::numeric_limits<std::int64_t>::max();
    if (!op.newK.empty()) {
        segment.newRow = offsets[segment.sequence];
        segment.newBegin = positions[segment.newRow];
        segment.lastKey = segment.newBegin + (*behind - segment.newRow) - 1;
        segment.firstKey = std::min(segment.firstKey, segment.newBegin);
    }
    return segment;
}

/// A BlockMask has rows for so many positions.
void checkPositions(const Attention& op) {
    if (op.blocks == nullptr) {
        return;
    }
    const KvPages pages(op.cache);
    const std::int32_t* positions = op.positions.as<const std::int32_t>();
    const std::int32_t* offsets = op.offsets.as<const std::int32_t>();
    for (std::int64_t sequence = 0; sequence < pages.sequences(); ++sequence) {
        for (std::int64_t row = offsets[sequence]; row < offsets[sequence + 1]; ++row) {
            const std::int64_t end = std::max<std::int64_t>(pages.end(sequence), positions[row] + 1);
            if (positions[row] < 0 || positions[row] >= op.blocks->shape.queries || end > op.blocks->shape.keys) {
                throw base::Internal("Attention: blocks: made for shorter sequences");
            }
        }
    }
}

template <class C> void attend(CpuContext& context, const Attention& op) {
    const KvPages pages(op.cache);
    const FlexPrograms programs(op.score, op.mask, op.blocks);
    const std::int64_t kvHeads = op.cache.keys.shape[2];
    const std::int64_t rows = op.q.shape[0];
    const std::int64_t rowsPerTask = std::max<std::int64_t>(1, kMaxQueries / (op.q.shape[1] / kvHeads));
    const std::int64_t blocks = (rows + rowsPerTask - 1) / rowsPerTask;
    context.pool().parallelFor(blocks * kvHeads, 1, [&](std::int64_t begin, std::int64_t end, int) {
        Task<C> task(op, pages, programs, context.simd());
        for (std::int64_t index = begin; index < end; ++index) {
            std::int64_t row = index / kvHeads * rowsPerTask;
            const std::int64_t rowEnd = std::min(rows, row + rowsPerTask);
            while (row < rowEnd) {
                const Segment segment = segmentAt(op, pages, row, rowEnd, index % kvHeads);
                task.run(segment);
                row = segment.rowEnd;
            }
        }
    });
}

} // namespace

void execute(CpuContext& context, const Attention& op) {
    checkPositions(op);
    if (op.q.dtype == DType::F64) {
        attend<double>(context, op);
    } else {
        attend<float>(context, op);
    }
}

} // namespace vitrine::kernels
