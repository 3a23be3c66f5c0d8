// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "base/error.h"
#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

namespace {

float lossExp(float x) {
    return fastExp(x);
}
double lossExp(double x) {
    return std::exp(x);
}

/// Logits of a piece of a row, capped.
template <class C>
void loadLogits(const CrossEntropy& op, std::int64_t row, std::int64_t begin, std::int64_t count, C* values) {
    loadFloats(op.logits.dtype, op.logits.data, row * op.logits.stride0() + begin, count, values);
    if (op.softCap > 0) {
        const C cap = static_cast<C>(op.softCap);
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] = cap * std::tanh(values[i] / cap);
        }
    }
}

/// What the softmax of a row needs, and its value at the target.
template <class C> struct RowSums {
    C best = std::numeric_limits<C>::lowest(); ///< finite, so that a first logit of -infinity gives 0 and not NaN
    double sum = 0;                            ///< of exp(y - best)
    C target = 0;
};

/// The sum is in sixteen fixed partial sums within a piece: they vectorise.
template <class C> C sumOfExponentials(const C* values, std::int64_t count, C best) {
    constexpr std::int64_t kLanes = 16;
    C lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
            lanes[lane] += lossExp(values[i + lane] - best);
        }
    }
    for (; i < count; ++i) {
        lanes[0] += lossExp(values[i] - best);
    }
    C sum = 0;
    for (const C lane : lanes) {
        sum += lane;
    }
    return sum;
}

template <class C> RowSums<C> sumsOfRow(const CrossEntropy& op, std::int64_t row, std::int64_t target) {
    RowSums<C> sums;
    C values[kRowPiece];
    forPieces(op.logits.shape[1], [&](std::int64_t begin, std::int64_t count) {
        loadLogits(op, row, begin, count, values);
        const C best = *std::max_element(values, values + count);
        if (best > sums.best) {
            sums.sum *= static_cast<double>(lossExp(sums.best - best));
            sums.best = best;
        }
        sums.sum += static_cast<double>(sumOfExponentials(values, count, sums.best));
        if (target >= begin && target < begin + count) {
            sums.target = values[target - begin];
        }
    });
    return sums;
}

/// Pieces ascend, and none is written before it is read: the gradient may take the place of the logits.
template <class C>
void writeGradient(const CrossEntropy& op, std::int64_t row, std::int64_t target, const RowSums<C>& sums) {
    const C scale = static_cast<C>(op.gradScale);
    const C share = static_cast<C>(static_cast<double>(op.gradScale) / sums.sum);
    C values[kRowPiece];
    C gradients[kRowPiece];
    forPieces(op.logits.shape[1], [&](std::int64_t begin, std::int64_t count) {
        loadLogits(op, row, begin, count, values);
        for (std::int64_t i = 0; i < count; ++i) {
            gradients[i] = lossExp(values[i] - sums.best) * share;
        }
        if (target >= begin && target < begin + count) {
            gradients[target - begin] -= scale;
        }
        if (op.softCap > 0) {
            const C cap = static_cast<C>(op.softCap);
            for (std::int64_t i = 0; i < count; ++i) {
                const C tangent = values[i] / cap;
                gradients[i] *= C(1) - tangent * tangent;
            }
        }
        storeFloats(op.gradLogits.dtype, gradients, count, op.gradLogits.data, row * op.gradLogits.stride0() + begin);
    });
}

void writeZeros(const CrossEntropy& op, std::int64_t row) {
    const float zeros[kRowPiece] = {};
    forPieces(op.logits.shape[1], [&](std::int64_t begin, std::int64_t count) {
        storeFloats(op.gradLogits.dtype, zeros, count, op.gradLogits.data, row * op.gradLogits.stride0() + begin);
    });
}

template <class C> void crossEntropyRow(const CrossEntropy& op, std::int64_t row, std::int64_t target) {
    const RowSums<C> sums = sumsOfRow<C>(op, row, target);
    const double loss = std::log(sums.sum) + static_cast<double>(sums.best) - static_cast<double>(sums.target);
    storeFloats(op.losses.dtype, &loss, 1, op.losses.data, row);
    if (!op.gradLogits.empty()) {
        writeGradient(op, row, target, sums);
    }
}

void ignoreRow(const CrossEntropy& op, std::int64_t row) {
    const double zero = 0;
    storeFloats(op.losses.dtype, &zero, 1, op.losses.data, row);
    if (!op.gradLogits.empty()) {
        writeZeros(op, row);
    }
}

} // namespace

void execute(CpuContext& context, const CrossEntropy& op) {
    const std::int32_t* targets = op.targets.as<const std::int32_t>();
    const std::int64_t vocab = op.logits.shape[1];
    forRows(context, op.logits.shape[0], 8 * vocab, [&](std::int64_t row) {
        const std::int64_t target = targets[row];
        if (target >= vocab) {
            throw base::BadInput(fmt::format("targets: id {} is outside the vocabulary of {}; use the ids of this "
                                             "model's tokenizer",
                                             target, vocab));
        }
        if (target < 0) {
            ignoreRow(op, row);
        } else if (op.logits.dtype == DType::F64) {
            crossEntropyRow<double>(op, row, target);
        } else {
            crossEntropyRow<float>(op, row, target);
        }
    });
}

void execute(CpuContext&, const SumLosses& op) {
    double sum = 0;
    if (op.accumulate) {
        loadFloats(op.out.dtype, op.out.data, 0, 1, &sum);
    }
    double losses[kRowPiece];
    forPieces(op.losses.shape[0], [&](std::int64_t begin, std::int64_t count) {
        loadFloats(op.losses.dtype, op.losses.data, begin, count, losses);
        for (std::int64_t i = 0; i < count; ++i) {
            sum += losses[i];
        }
    });
    storeFloats(op.out.dtype, &sum, 1, op.out.data, 0);
}

} // namespace vitrine::kernels
