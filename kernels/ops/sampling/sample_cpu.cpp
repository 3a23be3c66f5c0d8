// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sampling/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "kernels/context/cpu_context.h"
#include "kernels/core/floats.h"
#include "kernels/ops/sampling/sample_scratch.h"

namespace vitrine::kernels {

namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

/// Higher logit first; ties go to the lower id.
struct Better {
    const float* values;
    bool operator()(std::int32_t a, std::int32_t b) const {
        return values[a] > values[b] || (values[a] == values[b] && a < b);
    }
};

std::int32_t argmax(const float* values, std::int64_t count) {
    // Blocks keep the loop over values free of branches; the first block with the maximum has the lowest id.
    constexpr std::int64_t kBlock = 256;
    float best = kImpossible;
    std::int64_t bestBlock = 0;
    for (std::int64_t begin = 0; begin < count; begin += kBlock) {
        const std::int64_t end = std::min(count, begin + kBlock);
        float lanes[16];
        std::fill(lanes, lanes + 16, kImpossible);
        std::int64_t i = begin;
        for (; i + 16 <= end; i += 16) {
            for (std::int64_t lane = 0; lane < 16; ++lane) {
                lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
            }
        }
        float blockBest = kImpossible;
        for (; i < end; ++i) {
            blockBest = values[i] > blockBest ? values[i] : blockBest;
        }
        for (const float lane : lanes) {
            blockBest = lane > blockBest ? lane : blockBest;
        }
        if (blockBest > best) {
            best = blockBest;
            bestBlock = begin;
        }
    }
    const std::int64_t end = std::min(count, bestBlock + kBlock);
    for (std::int64_t i = bestBlock; i < end; ++i) {
        if (values[i] == best) {
            return static_cast<std::int32_t>(i);
        }
    }
    return 0;
}

/// sum(exp(exponentOf(value))) with a fixed order of sums.
template <class ExponentOf> double sumExp(const float* values, std::int64_t count, const ExponentOf& exponentOf) {
    double sum = 0;
    float terms[kRowPiece];
    forPieces(count, [&](std::int64_t begin, std::int64_t piece) {
        for (std::int64_t i = 0; i < piece; ++i) {
            terms[i] = fastExp(exponentOf(values[begin + i]));
        }
        float lanes[16] = {};
        std::int64_t i = 0;
        for (; i + 16 <= piece; i += 16) {
            for (std::int64_t lane = 0; lane < 16; ++lane) {
                lanes[lane] += terms[i + lane];
            }
        }
        for (; i < piece; ++i) {
            lanes[0] += terms[i];
        }
        for (const float lane : lanes) {
            sum += static_cast<double>(lane);
        }
    });
    return sum;
}

/// log(sum(exp(values))).
float logSumExp(const float* values, std::int64_t count, float maximum) {
    if (!(maximum > kImpossible)) {
        return maximum;
    }
    return maximum +
           static_cast<float>(std::log(sumExp(values, count, [maximum](float value) { return value - maximum; })));
}

/// The `wanted` best of ids[0, count), sorted, in front; a full sort only when all are wanted.
void sortBest(const float* values, std::int32_t* ids, std::int64_t count, std::int64_t wanted) {
    const Better better{values};
    if (wanted < count) {
        std::nth_element(ids, ids + wanted, ids + count, better);
    }
    std::sort(ids, ids + std::min(wanted, count), better);
}

class RowSampler {
public:
    RowSampler(const Sample& op, std::int64_t row, float* values, std::int32_t* ids)
        : op_(op), parameters_(op.parameters[static_cast<std::size_t>(row)]), row_(row), vocab_(op.logits.shape[1]),
          values_(values), ids_(ids) {}

    void run() {
        loadFloats(op_.logits.dtype, op_.logits.data, row_ * op_.logits.stride0(), vocab_, values_);
        makeComparable();
        const bool wantsDraw = !op_.drawLogprobs.empty();
        const bool wantsLogprob = !op_.logprobs.empty() || op_.topLogprobs > 0 || wantsDraw;
        float logSum = 0;
        float maximum = 0;
        if (wantsLogprob) {
            maximum = values_[argmax(values_, vocab_)];
            logSum = logSumExp(values_, vocab_, maximum);
            writeTop(logSum);
        }
        const double temperedLogSum = wantsDraw ? logSumTempered(maximum) : 0;
        const std::int32_t id = choose();
        op_.ids.as<std::int32_t>()[row_] = id;
        if (!op_.logprobs.empty()) {
            op_.logprobs.as<float>()[row_] = finite_ ? rawLogit(id) - logSum : std::numeric_limits<float>::quiet_NaN();
        }
        if (wantsDraw) {
            const float raw = rawLogit(id);
            write(DrawLogprob::Drawn, logDrawn_);
            write(DrawLogprob::Tempered, tempers() ? static_cast<double>(tempered(raw - maximum)) - temperedLogSum
                                                   : static_cast<double>(raw - logSum));
        }
    }

private:
    /// A broken model's NaN and infinities must not break the order that sorting needs.
    void makeComparable() {
        constexpr float kLargest = std::numeric_limits<float>::max();
        bool finite = true;
        for (std::int64_t i = 0; i < vocab_; ++i) {
            finite &= std::abs(values_[i]) <= kLargest;
            const float value = values_[i] > kLargest ? kLargest : values_[i];
            values_[i] = value == value ? value : kImpossible;
        }
        finite_ = finite;
    }

    void write(DrawLogprob which, double value) const {
        const std::int64_t place = row_ * kDrawLogprobs + static_cast<std::int64_t>(which);
        op_.drawLogprobs.as<float>()[place] =
            finite_ ? static_cast<float>(value) : std::numeric_limits<float>::quiet_NaN();
    }

    /// Else softmax(logits / temperature) is taken as that of the logits.
    bool tempers() const { return parameters_.temperature != 0 && parameters_.temperature != 1; }

    /// As choose() divides.
    float tempered(float below) const { return below * (1.0F / parameters_.temperature); }

    /// Log of the sum of exponentials of what tempered() gives for the raw logits.
    double logSumTempered(float maximum) const {
        if (!tempers() || !finite_) {
            return 0;
        }
        return std::log(sumExp(values_, vocab_, [inverse = 1.0F / parameters_.temperature, maximum](float value) {
            return (value - maximum) * inverse;
        }));
    }

    float rawLogit(std::int32_t id) const {
        float value = 0;
        loadFloats(op_.logits.dtype, op_.logits.data, row_ * op_.logits.stride0() + id, 1, &value);
        return value;
    }

    void writeTop(float logSum) {
        if (op_.topLogprobs == 0) {
            return;
        }
        fillIds();
        sortBest(values_, ids_, vocab_, op_.topLogprobs);
        for (std::int64_t j = 0; j < op_.topLogprobs; ++j) {
            op_.topIds.as<std::int32_t>()[row_ * op_.topLogprobs + j] = ids_[j];
            op_.topLogprobValues.as<float>()[row_ * op_.topLogprobs + j] = values_[ids_[j]] - logSum;
        }
    }

    void fillIds() {
        for (std::int64_t i = 0; i < vocab_; ++i) {
            ids_[i] = static_cast<std::int32_t>(i);
        }
    }

    /// A token that occurs several times is penalised once, as in transformers: marks go through the id buffer.
    void penalize() {
        if (parameters_.repetitionPenalty == 1) {
            return;
        }
        std::fill(ids_, ids_ + vocab_, 0);
        for (std::int64_t i = 0; i < parameters_.historyLength; ++i) {
            const std::int32_t id = parameters_.history[i];
            if (id >= 0 && id < vocab_ && ids_[id] == 0) {
                ids_[id] = 1;
                const float penalty = parameters_.repetitionPenalty;
                values_[id] = values_[id] < 0 ? values_[id] * penalty : values_[id] / penalty;
            }
        }
    }

    void addChanges() {
        for (const LogitChange& change : logitChanges(parameters_)) {
            if (change.id >= 0 && change.id < vocab_) {
                values_[change.id] += change.added;
            }
        }
    }

    void forbid() {
        for (std::int64_t i = 0; i < parameters_.forbiddenCount; ++i) {
            const std::int32_t id = parameters_.forbidden[i];
            if (id >= 0 && id < vocab_) {
                values_[id] = kImpossible;
            }
        }
    }

    std::int32_t choose() {
        penalize();
        addChanges();
        forbid();
        const std::int32_t best = argmax(values_, vocab_);
        if (parameters_.temperature == 0 || parameters_.topK == 1 || !(values_[best] > kImpossible)) {
            return best;
        }
        // Weights relative to the best; the best has 1. The temperature divides logits.
        const float maximum = values_[best];
        const float inverse = 1.0F / parameters_.temperature;
        for (std::int64_t i = 0; i < vocab_; ++i) {
            values_[i] = (values_[i] - maximum) * inverse;
        }
        return draw(filter());
    }

    /// Leaves the candidates in ids_[0, n), in ascending order of id, and returns n.
    std::int64_t filter() {
        const bool allCandidates = parameters_.topK == 0 && parameters_.topP >= 1 && parameters_.minP == 0;
        fillIds();
        if (allCandidates) {
            return vocab_;
        }
        std::int64_t count = vocab_;
        std::int64_t sorted = 0;
        if (parameters_.topK > 0 && parameters_.topK < vocab_) {
            count = parameters_.topK;
            sortBest(values_, ids_, vocab_, count);
            sorted = count;
        }
        if (parameters_.topP < 1) {
            count = nucleus(count, sorted);
        }
        if (parameters_.minP > 0) {
            const float least = std::log(parameters_.minP);
            count = std::partition(ids_, ids_ + count, [&](std::int32_t id) { return values_[id] >= least; }) - ids_;
        }
        std::sort(ids_, ids_ + count);
        return count;
    }

    /// Top-p: the best candidates until their share reaches p; a candidate stays while the share before it is below p.
    /// Grows the sorted front as needed, since it is nearly always short.
    std::int64_t nucleus(std::int64_t count, std::int64_t sorted) {
        double total = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            total += static_cast<double>(fastExp(values_[ids_[i]]));
        }
        const double wanted = static_cast<double>(parameters_.topP) * total;
        double share = 0;
        std::int64_t kept = 0;
        while (kept < count && share < wanted) {
            if (kept == sorted) {
                const std::int64_t more = std::max<std::int64_t>(64, 3 * sorted);
                sortBest(values_, ids_ + sorted, count - sorted, more);
                sorted = std::min(count, sorted + more);
            }
            share += static_cast<double>(fastExp(values_[ids_[kept]]));
            ++kept;
        }
        return std::max<std::int64_t>(1, kept);
    }

    /// Inverse of the cumulative distribution over the candidates in ascending order of id.
    std::int32_t draw(std::int64_t count) {
        double total = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            total += static_cast<double>(fastExp(values_[ids_[i]]));
        }
        const auto random = base::philox4x32(base::philoxKey(parameters_.seed, parameters_.request),
                                             static_cast<std::uint64_t>(parameters_.position), 0);
        const double uniform =
            (static_cast<double>(random[0]) * 0x1.0p32 + static_cast<double>(random[1]) + 0.5) * 0x1.0p-64;
        const double target = uniform * total;
        double sum = 0;
        std::int32_t chosen = ids_[0];
        for (std::int64_t i = 0; i < count; ++i) {
            const double weight = static_cast<double>(fastExp(values_[ids_[i]]));
            if (weight > 0) {
                chosen = ids_[i];
            }
            sum += weight;
            if (sum > target) {
                break;
            }
        }
        logDrawn_ = static_cast<double>(values_[chosen]) - std::log(total);
        return chosen;
    }

    const Sample& op_;
    const SampleParameters& parameters_;
    std::int64_t row_;
    std::int64_t vocab_;
    float* values_;
    std::int32_t* ids_;
    bool finite_ = true;  ///< every logit of the row
    double logDrawn_ = 0; ///< of the probability that draw() chose its token with
};

} // namespace

void execute(CpuContext& context, const Sample& op) {
    const std::int64_t rows = op.logits.shape[0];
    const std::int64_t vocab = op.logits.shape[1];
    if (rows == 0) {
        return;
    }
    const SampleScratch scratch(op, ScratchLayout(op.scratch.data));
    context.pool().parallelFor(scratch.slots, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t slot = begin; slot < end; ++slot) {
            float* values = scratch.values.as<float>() + slot * vocab;
            std::int32_t* ids = scratch.ids.as<std::int32_t>() + slot * vocab;
            for (std::int64_t row = slot; row < rows; row += scratch.slots) {
                RowSampler(op, row, values, ids).run();
            }
        }
    });
}

} // namespace vitrine::kernels
