// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/ops/floats.h"
#include "kernels/ops/kv_pages.h"
#include "kernels/ops/row_kernels.h"

namespace vitrine::kernels {

namespace {

/// Keys are visited in blocks that start at multiples of this logical position, so that a row's sums run in the same
/// order whichever rows share its task.
constexpr std::int64_t kKeyBlock = 32;
constexpr std::int64_t kMaxQueries = 16; ///< (row, head) pairs of one task

float exponential(float x) {
    return fastExp(x);
}
double exponential(double x) {
    return std::exp(x);
}

/// Online softmax of one (row, head).
template <class C> struct Query {
    std::int64_t row = 0;
    std::int64_t head = 0;
    std::int64_t lo = 0; ///< keys that it sees
    std::int64_t hi = -1;
    C maximum = -std::numeric_limits<C>::infinity();
    C sum = 0;
    const C* q = nullptr;
    C* result = nullptr;
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
    Task(const Attention& op, const KvPages& pages, SimdLevel simd) : op_(op), pages_(pages), simd_(simd) {}

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
        query = Query<C>{};
        query.row = segment.rowBegin + index / group;
        query.head = segment.kvHead * group + index % group;
        const std::int64_t position = op_.positions.template as<const std::int32_t>()[query.row];
        query.lo = std::max(op_.program.lo(position), segment.firstKey);
        query.hi = std::min(op_.program.hi(position), segment.lastKey);
        C* q = q_ + slot * kMaxHeadDim;
        loadFloats(op_.q.dtype, op_.q.data, query.row * op_.q.stride0() + query.head * dim, dim, q);
        query.q = q;
        query.result = results_ + slot * kMaxHeadDim;
        std::fill(query.result, query.result + dim, C(0));
        if (!op_.sinks.empty()) {
            loadFloats(op_.sinks.dtype, op_.sinks.data, query.head, 1, &query.maximum);
            query.sum = 1;
        }
    }

    void visitKeys(const Segment& segment, std::int64_t count) {
        std::int64_t lo = std::numeric_limits<std::int64_t>::max();
        std::int64_t hi = -1;
        for (std::int64_t i = 0; i < count; ++i) {
            if (queries_[i].lo <= queries_[i].hi) {
                lo = std::min(lo, queries_[i].lo);
                hi = std::max(hi, queries_[i].hi);
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
            }
            at += segment.kvHead * dim;
            const bool asIs = from.dtype == (sizeof(C) == sizeof(float) ? DType::F32 : DType::F64);
            if (asIs && run == end - begin) {
                return {from.template as<const C>() + at, stride};
            }
            for (std::int64_t i = 0; i < run; ++i) {
                loadFloats(from.dtype, from.data, at + i * stride, dim, buffer + (position - begin + i) * dim);
            }
            position += run;
        }
        return {buffer, dim};
    }

    void visitBlock(Query<C>& query, std::int64_t begin, std::int64_t end, const Tile<C>& keys, const Tile<C>& values) {
        const std::int64_t dim = op_.q.shape[2];
        const std::int64_t lo = std::max(begin, query.lo);
        const std::int64_t count = std::min(end, query.hi + 1) - lo;
        if (count <= 0) {
            return;
        }
        C scores[kKeyBlock];
        dotRows(simd_, query.q, keys.data + (lo - begin) * keys.stride, keys.stride, count, dim, scores);
        C maximum = query.maximum;
        for (std::int64_t i = 0; i < count; ++i) {
            scores[i] *= static_cast<C>(op_.scale);
            if (op_.program.softCap > 0) {
                const C cap = static_cast<C>(op_.program.softCap);
                scores[i] = cap * std::tanh(scores[i] / cap);
            }
            maximum = std::max(maximum, scores[i]);
        }
        if (maximum > query.maximum) {
            const C shrink = exponential(query.maximum - maximum);
            query.sum *= shrink;
            for (std::int64_t d = 0; d < dim; ++d) {
                query.result[d] *= shrink;
            }
            query.maximum = maximum;
        }
        for (std::int64_t i = 0; i < count; ++i) {
            scores[i] = exponential(scores[i] - maximum);
        }
        for (std::int64_t i = 0; i < count; ++i) {
            query.sum += scores[i];
        }
        addScaledRows(simd_, scores, values.data + (lo - begin) * values.stride, values.stride, count, dim,
                      query.result);
    }

    void finish(Query<C>& query) {
        const std::int64_t dim = op_.q.shape[2];
        const C inverse = query.sum > 0 ? C(1) / query.sum : (query.sum == 0 ? C(0) : query.sum);
        for (std::int64_t d = 0; d < dim; ++d) {
            query.result[d] *= inverse;
        }
        storeFloats(op_.out.dtype, query.result, dim, op_.out.data, query.row * op_.out.stride0() + query.head * dim);
        if (!op_.lse.empty()) {
            const C lse = query.sum == 0 ? -std::numeric_limits<C>::infinity() : query.maximum + std::log(query.sum);
            op_.lse.template as<float>()[query.row * op_.q.shape[1] + query.head] = static_cast<float>(lse);
        }
    }

    const Attention& op_;
    const KvPages& pages_;
    SimdLevel simd_;
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

template <class C> void attend(CpuContext& context, const Attention& op) {
    const KvPages pages(op.cache);
    const std::int64_t kvHeads = op.cache.keys.shape[2];
    const std::int64_t rows = op.q.shape[0];
    const std::int64_t rowsPerTask = std::max<std::int64_t>(1, kMaxQueries / (op.q.shape[1] / kvHeads));
    const std::int64_t blocks = (rows + rowsPerTask - 1) / rowsPerTask;
    context.pool().parallelFor(blocks * kvHeads, 1, [&](std::int64_t begin, std::int64_t end, int) {
        Task<C> task(op, pages, context.simd());
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
