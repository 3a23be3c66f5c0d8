// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/flex_attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/context/cpu_context.h"
#include "kernels/core/floats.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/ops/attention/flex_rows.h"
#include "kernels/ops/attention/flex_scratch.h"
#include "kernels/program/derivative.h"

namespace vitrine::kernels {

namespace {

/// Sizes, with names.
struct Sizes {
    explicit Sizes(const FlexAttention& op)
        : batch(op.q.shape[0]), heads(op.q.shape[1]), queries(op.q.shape[2]), dim(op.q.shape[3]),
          kvHeads(op.k.shape[1]), keys(op.k.shape[2]), group(heads / kvHeads) {}
    std::int64_t batch, heads, queries, dim, kvHeads, keys, group;

    std::int64_t row(std::int64_t b, std::int64_t h, std::int64_t query) const {
        return (b * heads + h) * queries + query;
    }
    std::int64_t rowBlocks() const { return (queries + kFlexRows - 1) / kFlexRows; }
    std::int64_t keyTiles() const { return (keys + kFlexKeys - 1) / kFlexKeys; }
};

/// Rows [first, first + count) of one head of a tensor (batch, heads, rows, dim), wherever its strides put them.
class HeadRows {
public:
    HeadRows(const TensorView& tensor, std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t count)
        : tensor_(tensor), dim_(tensor.shape[3]), apart_(tensor.stride(2)),
          begin_(batch * tensor.stride(0) + head * tensor.stride(1) + first * apart_), count_(count) {}

    /// As C, `dim` apart.
    template <class C> void load(C* out) const {
        forEachPiece([&](std::int64_t row, std::int64_t rows) {
            loadFloats(tensor_.dtype, tensor_.data, begin_ + row * apart_, rows * dim_, out + row * dim_);
        });
    }
    template <class C> void store(const C* rows) const {
        forEachPiece([&](std::int64_t row, std::int64_t together) {
            storeFloats(tensor_.dtype, rows + row * dim_, together * dim_, tensor_.data, begin_ + row * apart_);
        });
    }

private:
    /// Rows that follow each other are one piece.
    template <class Body> void forEachPiece(const Body& body) const {
        const std::int64_t piece = apart_ == dim_ ? count_ : 1;
        for (std::int64_t row = 0; row < count_; row += piece) {
            body(row, piece);
        }
    }

    const TensorView& tensor_;
    std::int64_t dim_, apart_, begin_, count_;
};

template <class C> C sinkOf(const FlexAttention& op, std::int64_t head) {
    C sink = 0;
    loadFloats(op.sinks.dtype, op.sinks.data, head, 1, &sink);
    return sink;
}

/// Online softmax of the rows of one task.
template <class C> class Forward {
public:
    Forward(SimdLevel simd, const FlexAttention& op, const FlexPrograms& programs)
        : simd_(simd), op_(op), sizes_(op), scores_(simd, programs, op.scale, sizes_.dim, sizes_.keys) {
        const auto rows = static_cast<std::size_t>(sizes_.group * kFlexRows);
        const auto dim = static_cast<std::size_t>(sizes_.dim);
        q_.resize(rows * dim);
        out_.resize(rows * dim);
        keys_.resize(static_cast<std::size_t>(kFlexKeys) * dim);
        values_.resize(keys_.size());
        rows_.resize(rows);
    }

    void run(std::int64_t batch, std::int64_t kvHead, std::int64_t query0, std::int64_t query1) {
        const std::int64_t rows = query1 - query0;
        for (std::int64_t g = 0; g < sizes_.group; ++g) {
            start(batch, kvHead * sizes_.group + g, query0, rows, g);
        }
        for (std::int64_t key = 0; key < sizes_.keys; key += kFlexKeys) {
            const std::int64_t keyEnd = std::min(key + kFlexKeys, sizes_.keys);
            bool loaded = false;
            for (std::int64_t g = 0; g < sizes_.group; ++g) {
                const std::int64_t head = kvHead * sizes_.group + g;
                if (!scores_.mask().any(batch, head, query0, query1, key, keyEnd)) {
                    continue;
                }
                if (!loaded) {
                    HeadRows(op_.k, batch, kvHead, key, keyEnd - key).load(keys_.data());
                    HeadRows(op_.v, batch, kvHead, key, keyEnd - key).load(values_.data());
                    loaded = true;
                }
                for (std::int64_t r = 0; r < rows; ++r) {
                    visit({batch, head, query0 + r}, g * kFlexRows + r, key, static_cast<int>(keyEnd - key));
                }
            }
        }
        for (std::int64_t g = 0; g < sizes_.group; ++g) {
            finish(batch, kvHead * sizes_.group + g, query0, rows, g);
        }
    }

private:
    C* rowOf(std::vector<C>& tile, std::int64_t place) { return tile.data() + place * sizes_.dim; }

    void start(std::int64_t batch, std::int64_t head, std::int64_t query0, std::int64_t rows, std::int64_t g) {
        HeadRows(op_.q, batch, head, query0, rows).load(rowOf(q_, g * kFlexRows));
        const C sink = op_.sinks.empty() ? C(0) : sinkOf<C>(op_, head);
        for (std::int64_t place = g * kFlexRows; place < g * kFlexRows + rows; ++place) {
            rows_[static_cast<std::size_t>(place)].start(op_.sinks.empty() ? nullptr : &sink, sizes_.dim,
                                                         rowOf(out_, place));
        }
    }

    void visit(const ProgramRow& row, std::int64_t place, std::int64_t key, int count) {
        C scores[kFlexKeys];
        if (scores_.compute(row, scores_.mask().reach(row), rowOf(q_, place), keys_.data(), sizes_.dim, key, count,
                            scores) != FlexAllowed::None) {
            rows_[static_cast<std::size_t>(place)].add(simd_, scores, count, values_.data(), sizes_.dim, sizes_.dim);
        }
    }

    void finish(std::int64_t batch, std::int64_t head, std::int64_t query0, std::int64_t rows, std::int64_t g) {
        for (std::int64_t r = 0; r < rows; ++r) {
            FlexSoftmax<C>& row = rows_[static_cast<std::size_t>(g * kFlexRows + r)];
            const C lse = row.finish(sizes_.dim);
            HeadRows(op_.out, batch, head, query0 + r, 1).store(row.out);
            if (!op_.lse.empty()) {
                storeFloats(op_.lse.dtype, &lse, 1, op_.lse.data, sizes_.row(batch, head, query0 + r));
            }
        }
    }

    SimdLevel simd_;
    const FlexAttention& op_;
    Sizes sizes_;
    FlexRowScores<C> scores_;
    std::vector<FlexSoftmax<C>> rows_;
    std::vector<C> q_, out_, keys_, values_;
};

/// LSE of rows as doubles. Stored as float32 it is off by |lse| 2^-25, and every probability of the row by as much in
/// proportion: of rows where that shows, it is computed again.
template <class C> class RowLse {
public:
    RowLse(SimdLevel simd, const FlexAttention& op, const FlexPrograms& programs)
        : simd_(simd), op_(op), sizes_(op), scores_(simd, programs, op.scale, sizes_.dim, sizes_.keys),
          q_(static_cast<std::size_t>(sizes_.dim)), keys_(static_cast<std::size_t>(kFlexKeys * sizes_.dim)) {}

    void run(std::int64_t batch, std::int64_t head, std::int64_t query, double& lse) {
        constexpr double kSmall = 1;
        const std::int64_t at = sizes_.row(batch, head, query);
        loadFloats(op_.lse.dtype, op_.lse.data, at, 1, &lse);
        const bool exact = op_.lse.dtype == DType::F64 || sizeof(C) == sizeof(float);
        if (exact || !(std::fabs(lse) > kSmall) || std::isinf(lse)) {
            return;
        }
        HeadRows(op_.q, batch, head, query, 1).load(q_.data());
        const C sink = op_.sinks.empty() ? C(0) : sinkOf<C>(op_, head);
        FlexSoftmax<C> softmax; // of values without elements
        softmax.start(op_.sinks.empty() ? nullptr : &sink, 0, nullptr);
        const ProgramRow row{batch, head, query};
        for (std::int64_t key = 0; key < sizes_.keys; key += kFlexKeys) {
            const std::int64_t keyEnd = std::min(key + kFlexKeys, sizes_.keys);
            if (!scores_.mask().any(batch, head, query, query + 1, key, keyEnd)) {
                continue;
            }
            HeadRows(op_.k, batch, head / sizes_.group, key, keyEnd - key).load(keys_.data());
            const int count = static_cast<int>(keyEnd - key);
            C scores[kFlexKeys];
            if (scores_.compute(row, scores_.mask().reach(row), q_.data(), keys_.data(), sizes_.dim, key, count,
                                scores) != FlexAllowed::None) {
                softmax.add(simd_, scores, count, nullptr, 0, 0);
            }
        }
        lse = static_cast<double>(softmax.finish(0));
    }

private:
    SimdLevel simd_;
    const FlexAttention& op_;
    Sizes sizes_;
    FlexRowScores<C> scores_;
    std::vector<C> q_, keys_;
};

/// Probabilities and gradients of scores, a row at a time; also the gradients of what the score program captures.
template <class C> class RowGradients {
public:
    RowGradients(SimdLevel simd, const FlexAttentionBackward& op, const FlexPrograms& programs,
                 const ScoreGradient* gradient)
        : simd_(simd), op_(op), sizes_(op.forward), scores_(simd, programs, op.forward.scale, sizes_.dim, sizes_.keys),
          gradient_(gradient) {
        if (gradient != nullptr) {
            std::vector<std::int32_t> roots{gradient->program.result};
            for (const ScoreGradient::CaptureGradient& item : gradient->captures) {
                roots.push_back(item.value);
                roots.insert(roots.end(), item.indices.begin(), item.indices.end());
            }
            program_.emplace(gradient->program, op.forward.score.captures, std::move(roots));
        }
    }

    FlexMaskRows& mask() { return scores_.mask(); }

    /// p: probabilities; ds: gradients by q.k. False when the row sees none of the keys.
    bool compute(const ProgramRow& row, const C* q, const C* gradOut, C lse, double delta, const std::vector<C>& keys,
                 const std::vector<C>& values, std::int64_t key, int count, C* p, C* ds) {
        if (lse == -std::numeric_limits<C>::infinity() ||
            scores_.compute(row, scores_.mask().reach(row), q, keys.data(), sizes_.dim, key, count, p) ==
                FlexAllowed::None) {
            return false;
        }
        dotRows(simd_, gradOut, values.data(), sizes_.dim, count, sizes_.dim, ds);
        for (int i = 0; i < count; ++i) {
            const bool allowed = p[i] != -std::numeric_limits<C>::infinity();
            p[i] = allowed ? std::exp(p[i] - lse) : C(0);
            ds[i] = allowed ? p[i] * (ds[i] - static_cast<C>(delta)) : C(0);
        }
        if (program_.has_value()) {
            program_->run(row, key, count, scores_.raw(), ds);
            const C* byScore = program_->floats();
            for (int i = 0; i < count; ++i) {
                ds[i] = p[i] == 0 ? C(0) : byScore[i]; // a blocked element's program may divide by zero
            }
        }
        for (int i = 0; i < count; ++i) {
            ds[i] *= static_cast<C>(op_.forward.scale);
        }
        return true;
    }

    /// Adds the gradients of captures of the last compute; `p` as it gave them.
    void addCaptures(const C* p, int count, const FlexScratch& layout, double* sums) {
        if (gradient_ == nullptr) {
            return;
        }
        int root = 1;
        for (const ScoreGradient::CaptureGradient& item : gradient_->captures) {
            const int value = root++;
            const int indices = root;
            root += static_cast<int>(item.indices.size());
            const auto capture = static_cast<std::size_t>(item.capture);
            if (capture >= op_.dCaptures.size() || op_.dCaptures[capture].empty()) {
                continue;
            }
            addCapture(value, indices, static_cast<int>(item.indices.size()), p, count, op_.dCaptures[capture].shape,
                       sums + layout.captureOffsets[capture]);
        }
    }

private:
    void addCapture(int value, int indices, int rank, const C* p, int count, const Shape& shape, double* to) {
        std::int64_t offsets[kFlexKeys] = {};
        for (int dim = 0; dim < rank; ++dim) {
            const std::int64_t extent = shape[dim];
            const std::int64_t* index = program_->integers(indices + dim);
            for (int i = 0; i < count; ++i) {
                const std::int64_t wrapped = index[i] < 0 ? index[i] + extent : index[i];
                offsets[i] = offsets[i] * extent + std::clamp<std::int64_t>(wrapped, 0, extent - 1);
            }
        }
        const C* values = program_->floats(value);
        for (int i = 0; i < count; ++i) {
            if (p[i] != 0) {
                to[offsets[i]] += static_cast<double>(values[i]);
            }
        }
    }

    SimdLevel simd_;
    const FlexAttentionBackward& op_;
    Sizes sizes_;
    FlexRowScores<C> scores_;
    const ScoreGradient* gradient_;
    std::optional<Interpreter<C>> program_;
};

template <class C> class Backward {
public:
    Backward(SimdLevel simd, const FlexAttentionBackward& op, const FlexPrograms& programs,
             const ScoreGradient* gradient, const FlexScratch& scratch)
        : simd_(simd), op_(op), sizes_(op.forward), scratch_(scratch), rows_(simd, op, programs, gradient) {
        const auto dim = static_cast<std::size_t>(sizes_.dim);
        for (std::vector<C>* tile : {&q_, &gradOut_, &dq_}) {
            tile->resize(static_cast<std::size_t>(kFlexRows) * dim);
        }
        for (std::vector<C>* tile : {&keys_, &values_, &dk_, &dv_}) {
            tile->resize(static_cast<std::size_t>(kFlexKeys) * dim);
        }
        p_.resize(static_cast<std::size_t>(kFlexRows * kFlexKeys));
        ds_.resize(p_.size());
    }

    /// dq of the rows of one block over all heads of a group, and the gradients of captures and sinks.
    void queries(std::int64_t batch, std::int64_t kvHead, std::int64_t query0, std::int64_t query1, double* sums) {
        for (std::int64_t head = kvHead * sizes_.group; head < (kvHead + 1) * sizes_.group; ++head) {
            loadRowsOf(batch, head, query0, query1);
            std::fill(dq_.begin(), dq_.end(), C(0));
            for (std::int64_t key = 0; key < sizes_.keys; key += kFlexKeys) {
                const std::int64_t keyEnd = std::min(key + kFlexKeys, sizes_.keys);
                if (!rows_.mask().any(batch, head, query0, query1, key, keyEnd)) {
                    continue;
                }
                loadKeys(batch, kvHead, key, keyEnd);
                const int count = static_cast<int>(keyEnd - key);
                for (std::int64_t query = query0; query < query1; ++query) {
                    if (compute({batch, head, query}, query - query0, key, count, p_.data(), ds_.data())) {
                        addScaledRows(simd_, ds_.data(), keys_.data(), sizes_.dim, count, sizes_.dim,
                                      dq_.data() + (query - query0) * sizes_.dim);
                        rows_.addCaptures(p_.data(), count, scratch_, sums);
                    }
                }
            }
            HeadRows(op_.dq, batch, head, query0, query1 - query0).store(dq_.data());
            addSink(batch, head, query0, query1, sums);
        }
    }

    /// dk and dv of one stretch of keys.
    void keys(std::int64_t batch, std::int64_t kvHead, std::int64_t key, std::int64_t keyEnd) {
        std::fill(dk_.begin(), dk_.end(), C(0));
        std::fill(dv_.begin(), dv_.end(), C(0));
        loadKeys(batch, kvHead, key, keyEnd);
        const int count = static_cast<int>(keyEnd - key);
        for (std::int64_t head = kvHead * sizes_.group; head < (kvHead + 1) * sizes_.group; ++head) {
            for (std::int64_t query0 = 0; query0 < sizes_.queries; query0 += kFlexRows) {
                const std::int64_t query1 = std::min(query0 + kFlexRows, sizes_.queries);
                if (rows_.mask().any(batch, head, query0, query1, key, keyEnd)) {
                    loadRowsOf(batch, head, query0, query1);
                    addRows(batch, head, query0, query1, key, count);
                }
            }
        }
        HeadRows(op_.dk, batch, kvHead, key, count).store(dk_.data());
        HeadRows(op_.dv, batch, kvHead, key, count).store(dv_.data());
    }

private:
    void loadRowsOf(std::int64_t batch, std::int64_t head, std::int64_t query0, std::int64_t query1) {
        HeadRows(op_.forward.q, batch, head, query0, query1 - query0).load(q_.data());
        HeadRows(op_.gradOut, batch, head, query0, query1 - query0).load(gradOut_.data());
    }
    void loadKeys(std::int64_t batch, std::int64_t kvHead, std::int64_t key, std::int64_t keyEnd) {
        HeadRows(op_.forward.k, batch, kvHead, key, keyEnd - key).load(keys_.data());
        HeadRows(op_.forward.v, batch, kvHead, key, keyEnd - key).load(values_.data());
    }

    bool compute(const ProgramRow& row, std::int64_t place, std::int64_t key, int count, C* p, C* ds) {
        const std::int64_t at = sizes_.row(row.batch, row.head, row.query);
        const double delta = scratch_.delta.template as<const double>()[at];
        const auto lse = static_cast<C>(scratch_.lse.template as<const double>()[at]);
        return rows_.compute(row, q_.data() + place * sizes_.dim, gradOut_.data() + place * sizes_.dim, lse, delta,
                             keys_, values_, key, count, p, ds);
    }

    /// Rows of P and dS are gathered key by key, so that each key's sum runs over rows in order.
    void addRows(std::int64_t batch, std::int64_t head, std::int64_t query0, std::int64_t query1, std::int64_t key,
                 int count) {
        const std::int64_t rows = query1 - query0;
        C p[kFlexKeys];
        C ds[kFlexKeys];
        for (std::int64_t r = 0; r < rows; ++r) {
            const bool any = compute({batch, head, query0 + r}, r, key, count, p, ds);
            for (int i = 0; i < count; ++i) {
                p_[static_cast<std::size_t>(i * kFlexRows + r)] = any ? p[i] : C(0);
                ds_[static_cast<std::size_t>(i * kFlexRows + r)] = any ? ds[i] : C(0);
            }
        }
        for (std::int64_t i = 0; i < count; ++i) {
            addScaledRows(simd_, p_.data() + i * kFlexRows, gradOut_.data(), sizes_.dim, rows, sizes_.dim,
                          dv_.data() + i * sizes_.dim);
            addScaledRows(simd_, ds_.data() + i * kFlexRows, q_.data(), sizes_.dim, rows, sizes_.dim,
                          dk_.data() + i * sizes_.dim);
        }
    }

    /// The sink has probability exp(sink - lse) and no value.
    void addSink(std::int64_t batch, std::int64_t head, std::int64_t query0, std::int64_t query1, double* sums) {
        if (op_.dSinks.empty()) {
            return;
        }
        const auto sink = sinkOf<double>(op_.forward, head);
        for (std::int64_t query = query0; query < query1; ++query) {
            const std::int64_t row = sizes_.row(batch, head, query);
            const double lse = scratch_.lse.template as<const double>()[row];
            sums[scratch_.sinkOffset + head] -= std::exp(sink - lse) * scratch_.delta.template as<const double>()[row];
        }
    }

    SimdLevel simd_;
    const FlexAttentionBackward& op_;
    Sizes sizes_;
    const FlexScratch& scratch_;
    RowGradients<C> rows_;
    std::vector<C> q_, gradOut_, dq_, keys_, values_, dk_, dv_, p_, ds_;
};

template <class C> void forward(CpuContext& context, const FlexAttention& op) {
    const Sizes sizes(op);
    const FlexPrograms programs(op.score, op.mask, op.blocks);
    const std::int64_t blocks = sizes.rowBlocks();
    context.pool().parallelFor(sizes.batch * sizes.kvHeads * blocks, 1, [&](std::int64_t begin, std::int64_t end, int) {
        Forward<C> task(context.simd(), op, programs);
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t plane = i / blocks;
            const std::int64_t query0 = i % blocks * kFlexRows;
            task.run(plane / sizes.kvHeads, plane % sizes.kvHeads, query0, std::min(query0 + kFlexRows, sizes.queries));
        }
    });
}

template <class C>
void computeLse(CpuContext& context, const FlexAttention& op, const FlexPrograms& programs,
                const FlexScratch& scratch) {
    const Sizes sizes(op);
    context.pool().parallelFor(
        sizes.batch * sizes.heads * sizes.queries, kFlexRows, [&](std::int64_t begin, std::int64_t end, int) {
            RowLse<C> rows(context.simd(), op, programs);
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t plane = i / sizes.queries;
                rows.run(plane / sizes.heads, plane % sizes.heads, i % sizes.queries, scratch.lse.as<double>()[i]);
            }
        });
}

/// rowsum(out * gradOut)
void computeDelta(CpuContext& context, const FlexAttentionBackward& op, const FlexScratch& scratch) {
    const Sizes sizes(op.forward);
    const std::int64_t rows = sizes.batch * sizes.heads * sizes.queries;
    context.pool().parallelFor(rows, 64, [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<double> out(static_cast<std::size_t>(sizes.dim)), gradient(out.size());
        for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t plane = row / sizes.queries;
            const std::int64_t batch = plane / sizes.heads;
            const std::int64_t head = plane % sizes.heads;
            HeadRows(op.forward.out, batch, head, row % sizes.queries, 1).load(out.data());
            HeadRows(op.gradOut, batch, head, row % sizes.queries, 1).load(gradient.data());
            double sum = 0;
            for (std::size_t i = 0; i < out.size(); ++i) {
                sum += out[i] * gradient[i];
            }
            scratch.delta.as<double>()[row] = sum;
        }
    });
}

/// Adds the parts in order.
void storeSums(const FlexAttentionBackward& op, const FlexScratch& scratch) {
    const auto* sums = scratch.sums.as<const double>();
    const auto store = [&](const TensorView& to, std::int64_t offset) {
        for (std::int64_t i = 0; i < to.shape.count(); ++i) {
            double sum = 0;
            for (std::int64_t part = 0; part < scratch.parts; ++part) {
                sum += sums[part * scratch.elements + offset + i];
            }
            storeFloats(to.dtype, &sum, 1, to.data, i);
        }
    };
    for (std::size_t i = 0; i < op.dCaptures.size(); ++i) {
        if (!op.dCaptures[i].empty()) {
            store(op.dCaptures[i], scratch.captureOffsets[i]);
        }
    }
    if (!op.dSinks.empty()) {
        store(op.dSinks, scratch.sinkOffset);
    }
}

template <class C> void backward(CpuContext& context, const FlexAttentionBackward& op) {
    const Sizes sizes(op.forward);
    const FlexPrograms programs(op.forward.score, op.forward.mask, op.forward.blocks);
    // A CPU that rehearses a GPU has the GPU's scratch, which may be too small for its own.
    const std::uint64_t needed = FlexScratch(op, nullptr).bytes;
    std::vector<double> own(op.scratch.bytes() < needed ? needed / sizeof(double) + 1 : 0);
    const FlexScratch scratch(op, own.empty() ? op.scratch.data : own.data());
    std::optional<ScoreGradient> gradient;
    if (!op.forward.score.empty()) {
        gradient = derivativeOf(*op.forward.score.program);
    }
    const ScoreGradient* score = gradient.has_value() ? &*gradient : nullptr;
    computeLse<C>(context, op.forward, programs, scratch);
    computeDelta(context, op, scratch);
    std::fill_n(scratch.sums.as<double>(), scratch.parts * scratch.elements, 0.0);
    const std::int64_t blocks = sizes.rowBlocks();
    const std::int64_t tasks = sizes.batch * sizes.kvHeads * blocks;
    context.pool().parallelFor(scratch.parts, 1, [&](std::int64_t begin, std::int64_t end, int) {
        Backward<C> worker(context.simd(), op, programs, score, scratch);
        for (std::int64_t part = begin; part < end; ++part) {
            double* sums = scratch.sums.as<double>() + part * scratch.elements;
            for (std::int64_t i = part * tasks / scratch.parts; i < (part + 1) * tasks / scratch.parts; ++i) {
                const std::int64_t plane = i / blocks;
                const std::int64_t query0 = i % blocks * kFlexRows;
                worker.queries(plane / sizes.kvHeads, plane % sizes.kvHeads, query0,
                               std::min(query0 + kFlexRows, sizes.queries), sums);
            }
        }
    });
    storeSums(op, scratch);
    const std::int64_t tiles = sizes.keyTiles();
    context.pool().parallelFor(sizes.batch * sizes.kvHeads * tiles, 1, [&](std::int64_t begin, std::int64_t end, int) {
        Backward<C> worker(context.simd(), op, programs, score, scratch);
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t plane = i / tiles;
            const std::int64_t key = i % tiles * kFlexKeys;
            worker.keys(plane / sizes.kvHeads, plane % sizes.kvHeads, key, std::min(key + kFlexKeys, sizes.keys));
        }
    });
}

bool computesInDouble(DType dtype) {
    return dtype == DType::F32 || dtype == DType::F64;
}

} // namespace

void execute(CpuContext& context, const FlexAttention& op) {
    if (computesInDouble(op.q.dtype)) {
        forward<double>(context, op);
    } else {
        forward<float>(context, op);
    }
}

void execute(CpuContext& context, const FlexAttentionBackward& op) {
    if (computesInDouble(op.forward.q.dtype)) {
        backward<double>(context, op);
    } else {
        backward<float>(context, op);
    }
}

} // namespace vitrine::kernels
