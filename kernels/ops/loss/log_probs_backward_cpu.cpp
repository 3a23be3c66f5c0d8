// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/log_probs.h"
#include "kernels/ops/loss/softmax_rows_cpu.h"

namespace vitrine::kernels {

namespace {

template <class C>
void logProbsGradientRow(const LogProbsBackward& op, std::int64_t row, std::int64_t target, double gradLogProb) {
    double lse = 0;
    loadFloats(op.lse.dtype, op.lse.data, row, 1, &lse);
    const C share = static_cast<C>(-gradLogProb * static_cast<double>(op.inverseTemperature));
    writeGradient(SoftmaxRows{op.logits, op.softCap, op.inverseTemperature}, row,
                  RowGradient<C>{static_cast<C>(lse), share, share, target}, op.gradLogits);
}

} // namespace

void execute(CpuContext& context, const LogProbsBackward& op) {
    const std::int64_t vocab = op.logits.shape[1];
    forRows(context, op.logits.shape[0], 8 * vocab, [&](std::int64_t row) {
        const std::int64_t target = targetOfRow(op.targets, row, vocab);
        double gradLogProb = 0;
        if (target >= 0) {
            loadFloats(op.gradLogProbs.dtype, op.gradLogProbs.data, row, 1, &gradLogProb);
        }
        if (gradLogProb == 0) {
            writeZeros(op.gradLogits, row);
        } else if (op.logits.dtype == DType::F64) {
            logProbsGradientRow<double>(op, row, target, gradLogProb);
        } else {
            logProbsGradientRow<float>(op, row, target, gradLogProb);
        }
    });
}

} // namespace vitrine::kernels
