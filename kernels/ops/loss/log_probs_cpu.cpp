// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/log_probs.h"

#include <cmath>

#include "kernels/ops/loss/softmax_rows_cpu.h"

namespace vitrine::kernels {

namespace {

/// Of one row.
struct RowLogProbs {
    double logProb = 0, entropy = 0, lse = 0;
};

void storeValue(const TensorView& values, std::int64_t row, double value) {
    if (!values.empty()) {
        storeFloats(values.dtype, &value, 1, values.data, row);
    }
}

template <class C, bool WithEntropy> RowLogProbs logProbsOf(const LogProbs& op, std::int64_t row, std::int64_t target) {
    const SoftmaxRows rows{op.logits, op.softCap, op.inverseTemperature};
    const RowSums<C> sums = sumsOfRow<C, WithEntropy>(rows, row, target);
    const double logSum = std::log(sums.sum);
    const auto best = static_cast<double>(sums.best);
    const double entropy = WithEntropy ? logSum - sums.product / sums.sum : 0;
    return {static_cast<double>(sums.target) - best - logSum, entropy, logSum + best};
}

template <class C> RowLogProbs logProbsRow(const LogProbs& op, std::int64_t row, std::int64_t target) {
    return op.entropies.empty() ? logProbsOf<C, false>(op, row, target) : logProbsOf<C, true>(op, row, target);
}

} // namespace

void execute(CpuContext& context, const LogProbs& op) {
    const std::int64_t vocab = op.logits.shape[1];
    forRows(context, op.logits.shape[0], 8 * vocab, [&](std::int64_t row) {
        const std::int64_t target = targetOfRow(op.targets, row, vocab);
        RowLogProbs values;
        if (target >= 0) {
            values = op.logits.dtype == DType::F64 ? logProbsRow<double>(op, row, target)
                                                   : logProbsRow<float>(op, row, target);
        }
        storeValue(op.logProbs, row, values.logProb);
        storeValue(op.entropies, row, values.entropy);
        storeValue(op.lse, row, values.lse);
    });
}

} // namespace vitrine::kernels
