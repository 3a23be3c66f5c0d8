// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/flex_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/core/floats.h"

namespace vitrine::kernels {

namespace {

float exponential(float x) {
    return fastExp(x);
}
double exponential(double x) {
    return std::exp(x);
}

/// First run that ends after `block`.
const BlockRun* firstRun(std::span<const BlockRun> runs, std::int64_t block) {
    return std::partition_point(runs.data(), runs.data() + runs.size(),
                                [&](const BlockRun& run) { return run.first + std::int64_t{run.count} <= block; });
}

} // namespace

bool anyRun(std::span<const BlockRun> runs, std::int64_t begin, std::int64_t end) {
    const BlockRun* run = firstRun(runs, begin);
    return run != runs.data() + runs.size() && run->first < end;
}

FlexPrograms::FlexPrograms(const BoundProgram& scoreOf, const BoundProgram& maskOf, const BlockMask* blocksOf)
    : score(scoreOf), mask(maskOf), blocks(blocksOf) {
    if (!mask.empty()) {
        analysis.emplace(mask);
    }
}

FlexMaskRows::FlexMaskRows(const FlexPrograms& programs, std::int64_t keys) : programs_(programs), keys_(keys) {
    if (programs.mask.empty()) {
        return;
    }
    const ProgramAnalysis& analysis = **programs.analysis;
    if (programs.blocks == nullptr) {
        bounded_ = !analysis.rows.lowUnbounded || !analysis.rows.highUnbounded;
        if (!analysis.low) {
            low_.emplace(analysis.rows.low, programs.mask.captures);
        }
        if (!analysis.high) {
            high_.emplace(analysis.rows.high, programs.mask.captures);
        }
    }
    if (programs.blocks != nullptr || !analysis.exact) {
        exact_.emplace(*programs.mask.program, programs.mask.captures);
    }
}

FlexReach FlexMaskRows::reach(const ProgramRow& row) {
    FlexReach out{0, keys_ - 1, !exact_.has_value()};
    if (bounded_) {
        const auto end = [&](const std::optional<LinearBound>& simple, std::optional<Interpreter<double>>& program) {
            if (simple) {
                return simple->at(row.query);
            }
            program->run(row, 0, 1, nullptr);
            return program->integers()[0];
        };
        const ProgramAnalysis& analysis = **programs_.analysis;
        out.low = std::max(out.low, end(analysis.low, low_));
        out.high = std::min(out.high, end(analysis.high, high_));
    }
    return out;
}

void FlexMaskRows::evaluate(const ProgramRow& row, std::int64_t key, std::int64_t end, std::uint8_t* allowed) {
    const int count = static_cast<int>(end - key);
    exact_->run(row, key, count, nullptr);
    std::copy_n(exact_->booleans(), count, allowed);
}

void FlexMaskRows::readBlocks(const ProgramRow& row, std::int64_t key, int count, std::uint8_t* allowed) {
    const BlockMaskShape& shape = programs_.blocks->shape;
    const std::span<const BlockRun> runs = programs_.blocks->row(row.batch, row.head, row.query / shape.queryBlock);
    const std::int64_t end = key + count;
    std::fill(allowed, allowed + count, std::uint8_t{0});
    for (const BlockRun* run = firstRun(runs, key / shape.keyBlock); run != runs.data() + runs.size(); ++run) {
        const std::int64_t from = std::max(key, run->first * shape.keyBlock);
        const std::int64_t to = std::min(end, (run->first + std::int64_t{run->count}) * shape.keyBlock);
        if (from >= to) {
            break;
        }
        if (run->full) {
            std::fill(allowed + (from - key), allowed + (to - key), std::uint8_t{1});
        } else {
            evaluate(row, from, to, allowed + (from - key));
        }
    }
}

FlexAllowed FlexMaskRows::read(const ProgramRow& row, std::int64_t key, int count, std::uint8_t* allowed) {
    return read(row, reach(row), key, count, allowed);
}

FlexAllowed FlexMaskRows::read(const ProgramRow& row, const FlexReach& reach, std::int64_t key, int count,
                               std::uint8_t* allowed) {
    const std::int64_t from = std::max(key, reach.low);
    const std::int64_t to = std::min(key + count, reach.high + 1);
    if (from >= to) {
        return FlexAllowed::None;
    }
    if (reach.exact && to - from == count) {
        return FlexAllowed::All;
    }
    std::fill(allowed, allowed + count, std::uint8_t{0});
    if (reach.exact) {
        std::fill(allowed + (from - key), allowed + (to - key), std::uint8_t{1});
        return FlexAllowed::Some;
    }
    const int width = static_cast<int>(to - from);
    if (programs_.blocks != nullptr) {
        readBlocks(row, from, width, allowed + (from - key));
    } else {
        evaluate(row, from, to, allowed + (from - key));
    }
    const int sum = std::accumulate(allowed, allowed + count, 0);
    return sum == 0 ? FlexAllowed::None : sum == count ? FlexAllowed::All : FlexAllowed::Some;
}

bool FlexMaskRows::any(std::int64_t batch, std::int64_t head, std::int64_t query0, std::int64_t query1,
                       std::int64_t key0, std::int64_t key1) {
    if (programs_.blocks != nullptr) {
        const BlockMaskShape& shape = programs_.blocks->shape;
        for (std::int64_t row = query0 / shape.queryBlock; row * shape.queryBlock < query1; ++row) {
            if (anyRun(programs_.blocks->row(batch, head, row), key0 / shape.keyBlock,
                       (key1 + shape.keyBlock - 1) / shape.keyBlock)) {
                return true;
            }
        }
        return false;
    }
    if (!bounded_) {
        return true;
    }
    for (std::int64_t query = query0; query < query1; ++query) {
        const FlexReach keys = reach({batch, head, query});
        if (keys.low <= keys.high && keys.low < key1 && keys.high >= key0) {
            return true;
        }
    }
    return false;
}

template <class C>
FlexAllowed FlexRowScores<C>::compute(const ProgramRow& row, const FlexReach& reach, const C* q, const C* keys,
                                      std::int64_t stride, std::int64_t key, int count, C* scores) {
    seen_ = mask_.read(row, reach, key, count, allowed_);
    return computeSeen(row, q, keys, stride, key, count, scores);
}

template <class C>
FlexAllowed FlexRowScores<C>::computeSeen(const ProgramRow& row, const C* q, const C* keys, std::int64_t stride,
                                          std::int64_t key, int count, C* scores) {
    if (seen_ == FlexAllowed::None) {
        return seen_;
    }
    C* const products = program_.has_value() ? raw_ : scores;
    dotRows(simd_, q, keys, stride, count, dim_, products);
    for (int i = 0; i < count; ++i) {
        products[i] *= scale_;
    }
    if (program_.has_value()) {
        program_->run(row, key, count, raw_);
        std::copy_n(program_->floats(), count, scores);
    }
    if (seen_ == FlexAllowed::Some) {
        for (int i = 0; i < count; ++i) {
            scores[i] = allowed_[i] != 0 ? scores[i] : -std::numeric_limits<C>::infinity();
        }
    }
    return seen_;
}

template <class C> void FlexSoftmax<C>::start(const C* sink, std::int64_t dim, C* to) {
    maximum = sink != nullptr ? *sink : -std::numeric_limits<C>::infinity();
    sum = sink != nullptr ? C(1) : C(0);
    out = to;
    std::fill(out, out + dim, C(0));
}

template <class C>
void FlexSoftmax<C>::add(SimdLevel simd, C* scores, int count, const C* values, std::int64_t stride, std::int64_t dim) {
    C highest = maximum;
    for (int i = 0; i < count; ++i) {
        highest = std::max(highest, scores[i]);
    }
    if (highest > maximum) {
        const C shrink = exponential(maximum - highest);
        sum *= shrink;
        for (std::int64_t d = 0; d < dim; ++d) {
            out[d] *= shrink;
        }
        maximum = highest;
    }
    if (maximum == -std::numeric_limits<C>::infinity()) {
        return; // the programs blocked them all
    }
    for (int i = 0; i < count; ++i) {
        scores[i] = exponential(scores[i] - highest);
    }
    C total = sum;
    for (int i = 0; i < count; ++i) {
        total += scores[i];
    }
    sum = total;
    addScaledRows(simd, scores, values, stride, count, dim, out);
}

template <class C> C FlexSoftmax<C>::finish(std::int64_t dim) {
    const C inverse = sum > 0 ? C(1) / sum : sum; // a sum of 0 or NaN stays what it is
    for (std::int64_t d = 0; d < dim; ++d) {
        out[d] *= inverse;
    }
    return sum == 0 ? -std::numeric_limits<C>::infinity() : maximum + std::log(sum);
}

template class FlexRowScores<float>;
template class FlexRowScores<double>;
template struct FlexSoftmax<float>;
template struct FlexSoftmax<double>;

} // namespace vitrine::kernels
