// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/cross_entropy.h"

#include <cmath>

#include "kernels/ops/loss/softmax_rows_cpu.h"

namespace vitrine::kernels {

namespace {

template <class C> void crossEntropyRow(const CrossEntropy& op, std::int64_t row, std::int64_t target) {
    const SoftmaxRows rows{op.logits, op.softCap};
    const RowSums<C> sums = sumsOfRow<C, false>(rows, row, target);
    const double loss = std::log(sums.sum) + static_cast<double>(sums.best) - static_cast<double>(sums.target);
    storeFloats(op.losses.dtype, &loss, 1, op.losses.data, row);
    if (!op.gradLogits.empty()) {
        const C share = static_cast<C>(static_cast<double>(op.gradScale) / sums.sum);
        writeGradient(rows, row, RowGradient<C>{sums.best, share, static_cast<C>(op.gradScale), target}, op.gradLogits);
    }
}

void ignoreRow(const CrossEntropy& op, std::int64_t row) {
    const double zero = 0;
    storeFloats(op.losses.dtype, &zero, 1, op.losses.data, row);
    if (!op.gradLogits.empty()) {
        writeZeros(op.gradLogits, row);
    }
}

} // namespace

void execute(CpuContext& context, const CrossEntropy& op) {
    const std::int64_t vocab = op.logits.shape[1];
    forRows(context, op.logits.shape[0], 8 * vocab, [&](std::int64_t row) {
        const std::int64_t target = targetOfRow(op.targets, row, vocab);
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
