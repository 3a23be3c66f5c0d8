// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/attention.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "kernels/context/cpu_context.h"
#include "kernels/core/floats.h"
#include "kernels/ops/attention/flex_rows.h"
#include "kernels/ops/attention/kv_pages.h"
#include "kernels/ops/attention/kv_rows.h"

namespace vitrine::kernels {

namespace {

/// Keys are visited in blocks that start at multiples of this logical position, so that a row's sums run in the same
/// order whichever rows share its task.
constexpr std::int64_t kKeyBlock = 32;
constexpr std::int64_t kFewestDecided = 256;                              ///< keys that analysis looks at
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
    /// `analysis`: of the mask, or null.
    Task(const Attention& op, const KvPages& pages, const FlexPrograms& programs, const IntervalAnalysis* analysis,
         SimdLevel simd)
        : op_(op), pages_(pages), simd_(simd), scores_(simd, programs, op.scale, op.q.shape[2], kNoKey),
          byHead_(scores_.mask().byHead()) {
        if (analysis != nullptr) {
            analysis_.emplace(analysis->forAnotherThread());
        }
    }

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
    void start(const Segment& segment, std::int64_t group, std::int64_t index, Query<C>& query, std::int64_t place) {
        const std::int64_t dim = op_.q.shape[2];
        query.row = segment.rowBegin + index / group;
        query.at = {segment.sequence, segment.kvHead * group + index % group,
                    op_.positions.template as<const std::int32_t>()[query.row]};
        if (place > 0 && queries_[place - 1].row == query.row && !scores_.mask().perHead()) {
            query.reach = queries_[place - 1].reach;
        } else {
            query.reach = scores_.mask().reach(query.at);
            query.reach.low = std::max(query.reach.low, segment.firstKey);
            query.reach.high = std::min(query.reach.high, segment.lastKey);
        }
        C* q = q_ + place * kMaxHeadDim;
        loadFloats(op_.q.dtype, op_.q.data, query.row * op_.q.stride0() + query.at.head * dim, dim, q);
        query.q = q;
        C sink = 0;
        if (!op_.sinks.empty()) {
            loadFloats(op_.sinks.dtype, op_.sinks.data, query.at.head, 1, &sink);
        }
        query.softmax.start(op_.sinks.empty() ? nullptr : &sink, dim, results_ + place * kMaxHeadDim);
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
        if (lo <= hi) {
            visitRange(segment, count, lo, hi + 1);
        }
    }

    /// Halves the keys until analysis says that the queries see none or all of them.
    void visitRange(const Segment& segment, std::int64_t count, std::int64_t begin, std::int64_t end) {
        const MaskVerdict verdict = analysis_ ? verdictOf(count, begin, end) : MaskVerdict::Undecided;
        if (verdict == MaskVerdict::Empty) {
            return;
        }
        if (analysis_ && verdict == MaskVerdict::Undecided && end - begin > kFewestDecided) {
            const std::int64_t half = (begin + (end - begin) / 2) / kFewestDecided * kFewestDecided;
            const std::int64_t middle = half > begin ? half : half + kFewestDecided;
            visitRange(segment, count, begin, middle);
            visitRange(segment, count, middle, end);
            return;
        }
        for (std::int64_t at = begin; at < end;) {
            const std::int64_t blockEnd = std::min(end, (at / kKeyBlock + 1) * kKeyBlock);
            const Tile<C> keys = tile(segment, at, blockEnd, op_.cache.keys, op_.newK, true, keyTile_);
            const Tile<C> values = tile(segment, at, blockEnd, op_.cache.values, op_.newV, false, valueTile_);
            for (std::int64_t i = 0; i < count; ++i) {
                const bool repeated = i > 0 && !byHead_ && queries_[i - 1].row == queries_[i].row;
                visitBlock(queries_[i], at, blockEnd, verdict == MaskVerdict::Full, repeated, keys, values);
            }
            at = blockEnd;
        }
    }

    MaskVerdict verdictOf(std::int64_t count, std::int64_t begin, std::int64_t end) {
        const ProgramRow& first = queries_[0].at;
        ProgramBox box{first.batch, first.batch, first.head, first.head, first.query, first.query, begin, end - 1};
        for (std::int64_t i = 1; i < count; ++i) {
            const ProgramRow& at = queries_[i].at;
            box.headLow = std::min(box.headLow, at.head);
            box.headHigh = std::max(box.headHigh, at.head);
            box.queryLow = std::min(box.queryLow, at.query);
            box.queryHigh = std::max(box.queryHigh, at.query);
        }
        return analysis_->mask(box);
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
                const KvPages::Place place = pages_.place(segment.sequence, position);
                stride = pages_.tokenStride();
                at = isKey ? place.key : place.value;
                run = std::min({place.run, end - position, segment.newBegin - position});
                if (op_.cache.quantized()) {
                    const std::int64_t scale = isKey ? place.keyScale : place.valueScale;
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

    /// `full`: the query sees all of the block's keys in its reach. `repeated`: what the query before it sees of them.
    void visitBlock(Query<C>& query, std::int64_t begin, std::int64_t end, bool full, bool repeated,
                    const Tile<C>& keys, const Tile<C>& values) {
        const std::int64_t low = std::max(begin, query.reach.low);
        const auto count = static_cast<int>(std::min(end, query.reach.high + 1) - low);
        if (count <= 0) {
            return;
        }
        C scores[kKeyBlock];
        const C* key = keys.data + (low - begin) * keys.stride;
        const FlexReach reach{query.reach.low, query.reach.high, query.reach.exact || full};
        const FlexAllowed seen = repeated
                                     ? scores_.computeSeen(query.at, query.q, key, keys.stride, low, count, scores)
                                     : scores_.compute(query.at, reach, query.q, key, keys.stride, low, count, scores);
        if (seen != FlexAllowed::None) {
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
            op_.lse.template as<float>()[query.at.head * op_.q.shape[0] + query.row] = static_cast<float>(lse);
        }
    }

    const Attention& op_;
    const KvPages& pages_;
    SimdLevel simd_;
    FlexRowScores<C> scores_;
    bool byHead_; ///< heads may see different keys
    std::optional<IntervalAnalysis> analysis_;
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
    const std::int32_t* next = std::upper_bound(offsets, offsets + pages.sequences() + 1, static_cast<int>(row));
    Segment segment;
    segment.sequence = next - offsets - 1;
    if (segment.sequence < 0 || segment.sequence >= pages.sequences()) {
        throw base::Internal("Attention: offsets: a row belongs to no sequence");
    }
    segment.rowBegin = row;
    segment.rowEnd = std::min<std::int64_t>(rowEnd, *next);
    segment.kvHead = kvHead;
    segment.firstKey = pages.first(segment.sequence);
    segment.lastKey = pages.end(segment.sequence) - 1;
    segment.newBegin = std::numeric_limits<std::int64_t>::max();
    if (!op.newK.empty()) {
        segment.newRow = offsets[segment.sequence];
        segment.newBegin = positions[segment.newRow];
        segment.lastKey = segment.newBegin + (*next - segment.newRow) - 1;
        segment.firstKey = std::min(segment.firstKey, segment.newBegin);
    }
    return segment;
}

/// Analysis reads all that a mask captures, so it is for many keys to decide on.
std::optional<IntervalAnalysis> analysisOf(const Attention& op, const KvPages& pages, const FlexPrograms& programs) {
    if (op.mask.empty() || (*programs.analysis)->exact) {
        return std::nullopt;
    }
    const std::int32_t* offsets = op.offsets.as<const std::int32_t>();
    std::int64_t asked = 0;
    for (std::int64_t sequence = 0; sequence < pages.sequences(); ++sequence) {
        const std::int64_t keys = pages.end(sequence) - pages.first(sequence);
        asked += (offsets[sequence + 1] - offsets[sequence]) * (keys > kFewestDecided ? keys : 0);
    }
    std::int64_t captured = 0;
    for (const TensorView& tensor : op.mask.captures.tensors) {
        captured += tensor.shape.count();
    }
    return asked * op.cache.keys.shape[2] > 2 * captured
               ? std::optional<IntervalAnalysis>(std::in_place, *op.mask.program, op.mask.captures)
               : std::nullopt;
}

template <class C> void attend(CpuContext& context, const Attention& op) {
    const KvPages pages(op.cache);
    const FlexPrograms programs(op.score, op.mask, nullptr);
    const std::optional<IntervalAnalysis> analysis = analysisOf(op, pages, programs);
    const std::int64_t kvHeads = op.cache.keys.shape[2];
    const std::int64_t rows = op.q.shape[0];
    const std::int64_t rowsPerTask = std::max<std::int64_t>(1, kMaxQueries / (op.q.shape[1] / kvHeads));
    const std::int64_t blocks = (rows + rowsPerTask - 1) / rowsPerTask;
    context.pool().parallelFor(blocks * kvHeads, 1, [&](std::int64_t begin, std::int64_t end, int) {
        Task<C> task(op, pages, programs, analysis ? &*analysis : nullptr, context.simd());
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
    if (op.q.dtype == DType::F64) {
        attend<double>(context, op);
    } else {
        attend<float>(context, op);
    }
}

} // namespace vitrine::kernels
