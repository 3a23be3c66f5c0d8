// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/policy_loss.h"

#include <cmath>

#include "kernels/core/floats.h"

namespace vitrine::kernels {

namespace {

double tokenValue(const TensorView& values, std::int64_t row) {
    double value = 0;
    loadFloats(values.dtype, values.data, row, 1, &value);
    return value;
}

double k3(double x) {
    return std::expm1(x) - x;
}

/// Adds a token to the sums and returns the gradient of its log-probability.
double addToken(const PolicyLoss& op, std::int64_t row, double* sums) {
    const double logProb = tokenValue(op.logProbs, row);
    const double advantage = tokenValue(op.advantages, row);
    const double old = op.old.empty() ? logProb : tokenValue(op.old, row);
    const double ratio = op.old.empty() ? 1 : std::exp(logProb - old);
    const double low = 1 - static_cast<double>(op.clipLow), high = 1 + static_cast<double>(op.clipHigh);
    const double whole = ratio * advantage;
    const double bounded = (ratio < low ? low : ratio > high ? high : ratio) * advantage;
    const bool clipped = bounded < whole; // a NaN stays in `whole`
    double importance = 1;
    if (!op.rollout.empty()) {
        const auto cap = static_cast<double>(op.importanceCap);
        const double gap = old - tokenValue(op.rollout, row);
        sums[PolicySums::Gap] += std::fabs(gap);
        sums[PolicySums::Mismatch] += k3(gap);
        if (cap > 0) {
            importance = std::exp(gap);
            const bool truncated = importance > cap;
            importance = truncated ? cap : importance;
            sums[PolicySums::Truncated] += truncated ? 1 : 0;
        }
    }
    double penalty = 0, slope = 0;
    if (!op.reference.empty()) {
        const double distance = tokenValue(op.reference, row) - logProb;
        const auto coefficient = static_cast<double>(op.klCoefficient);
        sums[PolicySums::Kl] += k3(distance);
        penalty = coefficient * k3(distance);
        slope = -coefficient * std::expm1(distance);
    }
    const double weight = tokenValue(op.weights, row);
    sums[PolicySums::Loss] += weight * (penalty - importance * (clipped ? bounded : whole));
    sums[PolicySums::Clipped] += clipped ? 1 : 0;
    sums[PolicySums::Entropy] += op.entropies.empty() ? 0 : tokenValue(op.entropies, row);
    sums[PolicySums::Ratio] += ratio;
    sums[PolicySums::Tokens] += 1;
    return weight * (slope - (clipped ? 0 : importance * whole));
}

} // namespace

void execute(CpuContext&, const PolicyLoss& op) {
    const auto* targets = op.targets.as<const std::int32_t>();
    double sums[PolicySums::kCount] = {};
    for (std::int64_t row = 0; row < op.logProbs.shape[0]; ++row) {
        const double gradient = targets[row] < 0 ? 0 : addToken(op, row, sums);
        if (!op.gradLogProbs.empty()) {
            storeFloats(op.gradLogProbs.dtype, &gradient, 1, op.gradLogProbs.data, row);
        }
    }
    for (int i = 0; i < PolicySums::kCount; ++i) {
        op.sums.as<double>()[i] += sums[i];
    }
}

} // namespace vitrine::kernels
