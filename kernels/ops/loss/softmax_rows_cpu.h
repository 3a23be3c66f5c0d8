// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Softmax of rows of logits on the CPU: the maximum and the sums in one pass, the gradient of the logits in another.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/core/floats.h"
#include "kernels/core/tensor.h"
#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

inline float lossExp(float x) {
    return fastExp(x);
}
inline double lossExp(double x) {
    return std::exp(x);
}

/// Negative: the row is ignored. Throws BadInput for a target that is not below vocab.
std::int64_t targetOfRow(const TensorView& targets, std::int64_t row, std::int64_t vocab);

/// Logits, and what becomes of them before the softmax: y = softCap tanh(logits / softCap), or the logits themselves
/// when softCap is 0, times inverseTemperature.
struct SoftmaxRows {
    TensorView logits;
    float softCap = 0;
    float inverseTemperature = 1;
};

/// y of a piece of a row.
template <class C>
void loadLogits(const SoftmaxRows& rows, std::int64_t row, std::int64_t begin, std::int64_t count, C* values) {
    loadFloats(rows.logits.dtype, rows.logits.data, row * rows.logits.stride0() + begin, count, values);
    if (rows.softCap > 0) {
        const C cap = static_cast<C>(rows.softCap);
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] = cap * std::tanh(values[i] / cap);
        }
    }
    if (rows.inverseTemperature != 1) {
        const C factor = static_cast<C>(rows.inverseTemperature);
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] *= factor;
        }
    }
}

/// What the softmax of a row needs, and its value at the target.
template <class C> struct RowSums {
    C best = std::numeric_limits<C>::lowest(); ///< finite, so that a first logit of -infinity gives 0 and not NaN
    double sum = 0;                            ///< of exp(y - best)
    double product = 0;                        ///< of exp(y - best) (y - best), where asked for
    C target = 0;
};

/// Below it an exponential is 0.
template <class C> inline constexpr C kNoExponential = static_cast<C>(sizeof(C) == sizeof(float) ? -88 : -746);

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

/// The sum of exp(y - best) (y - best), to which -infinity adds 0; in partial sums as above.
template <class C> C sumOfProducts(const C* values, std::int64_t count, C best) {
    constexpr std::int64_t kLanes = 16;
    const auto productOf = [best](C value) {
        return lossExp(value - best) * std::max(value - best, kNoExponential<C>);
    };
    C lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
            lanes[lane] += productOf(values[i + lane]);
        }
    }
    for (; i < count; ++i) {
        lanes[0] += productOf(values[i]);
    }
    C sum = 0;
    for (const C lane : lanes) {
        sum += lane;
    }
    return sum;
}

/// WithProducts: also the sum that entropies need.
template <class C, bool WithProducts>
RowSums<C> sumsOfRow(const SoftmaxRows& rows, std::int64_t row, std::int64_t target) {
    RowSums<C> sums;
    C values[kRowPiece];
    forPieces(rows.logits.shape[1], [&](std::int64_t begin, std::int64_t count) {
        loadLogits(rows, row, begin, count, values);
        const C best = *std::max_element(values, values + count);
        if (best > sums.best) {
            const auto factor = static_cast<double>(lossExp(sums.best - best));
            if constexpr (WithProducts) {
                const C step = std::max(sums.best - best, kNoExponential<C>);
                sums.product = factor * (sums.product + sums.sum * static_cast<double>(step));
            }
            sums.sum *= factor;
            sums.best = best;
        }
        sums.sum += static_cast<double>(sumOfExponentials(values, count, sums.best));
        if constexpr (WithProducts) {
            sums.product += static_cast<double>(sumOfProducts(values, count, sums.best));
        }
        if (target >= begin && target < begin + count) {
            sums.target = values[target - begin];
        }
    });
    return sums;
}

/// A row's gradient: (exp(y - best) share - scale onehot(target)) times the slope of the soft cap. share is scale /
/// sum; where best is the logarithm of the sum of all exponentials, it is scale.
template <class C> struct RowGradient {
    C best = 0, share = 0, scale = 0;
    std::int64_t target = 0;
};

/// Pieces ascend, and none is written before it is read: the gradient may take the place of the logits.
template <class C>
void writeGradient(const SoftmaxRows& rows, std::int64_t row, const RowGradient<C>& gradient, const TensorView& out) {
    C values[kRowPiece];
    C gradients[kRowPiece];
    forPieces(rows.logits.shape[1], [&](std::int64_t begin, std::int64_t count) {
        loadLogits(rows, row, begin, count, values);
        for (std::int64_t i = 0; i < count; ++i) {
            gradients[i] = lossExp(values[i] - gradient.best) * gradient.share;
        }
        if (gradient.target >= begin && gradient.target < begin + count) {
            gradients[gradient.target - begin] -= gradient.scale;
        }
        if (rows.softCap > 0) {
            const C cap = static_cast<C>(rows.softCap) * static_cast<C>(rows.inverseTemperature);
            for (std::int64_t i = 0; i < count; ++i) {
                const C tangent = values[i] / cap;
                gradients[i] *= C(1) - tangent * tangent;
            }
        }
        storeFloats(out.dtype, gradients, count, out.data, row * out.stride0() + begin);
    });
}

inline void writeZeros(const TensorView& out, std::int64_t row) {
    const float zeros[kRowPiece] = {};
    forPieces(out.shape[1], [&](std::int64_t begin, std::int64_t count) {
        storeFloats(out.dtype, zeros, count, out.data, row * out.stride0() + begin);
    });
}

} // namespace vitrine::kernels
