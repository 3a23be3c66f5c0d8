// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The loss of a policy over its tokens, in double, by one block: its sums always have the same order.

#include "device/abi/policy_loss.h"
#include "device/lib/double_sums.cuh"
#include "device/lib/pdl.cuh"

namespace vt {

namespace policy {

using Params = vitrine::kernels::abi::PolicyLossParams;
using Index = vitrine::kernels::abi::PolicySums;

#if VT_X_DTYPE == VT_F64
using Value = double; ///< of logProbs, entropies and gradLogProbs
#else
using Value = float;
#endif
#if VT_OLD_DTYPE == VT_F64
using Old = double;
#else
using Old = float;
#endif

__device__ __forceinline__ double valueAt(const void* values, i64 row) {
    return static_cast<double>(static_cast<const Value*>(values)[row]);
}

/// exp(x) - x - 1.
__device__ __forceinline__ double k3(double x) {
    return expm1(x) - x;
}

/// Of one token.
struct Terms {
    double sums[Index::kCount];
    double gradient;
};

__device__ __forceinline__ Terms termsOf(const Params& p, i64 row) {
    const double logProb = valueAt(p.logProbs, row);
    const double advantage = static_cast<double>(p.advantages[row]);
    const double old = p.old != nullptr ? static_cast<double>(static_cast<const Old*>(p.old)[row]) : logProb;
    const double ratio = p.old != nullptr ? exp(logProb - old) : 1.0;
    const double low = 1.0 - p.clipLow, high = 1.0 + p.clipHigh;
    const double whole = ratio * advantage;
    const double bounded = (ratio < low ? low : ratio > high ? high : ratio) * advantage;
    const bool clipped = bounded < whole; // a NaN stays in `whole`
    Terms out{};
    double importance = 1.0;
    if (p.rollout != nullptr) {
        const double gap = old - static_cast<double>(p.rollout[row]);
        out.sums[Index::Gap] = fabs(gap);
        out.sums[Index::Mismatch] = k3(gap);
        if (p.importanceCap > 0) {
            const double ofRollout = exp(gap);
            const bool truncated = ofRollout > p.importanceCap;
            importance = truncated ? p.importanceCap : ofRollout;
            out.sums[Index::Truncated] = truncated ? 1.0 : 0.0;
        }
    }
    double penalty = 0, slope = 0;
    if (p.reference != nullptr) {
        const double distance = static_cast<double>(p.reference[row]) - logProb;
        out.sums[Index::Kl] = k3(distance);
        penalty = p.klCoefficient * out.sums[Index::Kl];
        slope = -p.klCoefficient * expm1(distance);
    }
    const double weight = static_cast<double>(p.weights[row]);
    out.sums[Index::Loss] = weight * (penalty - importance * (clipped ? bounded : whole));
    out.sums[Index::Clipped] = clipped ? 1.0 : 0.0;
    out.sums[Index::Entropy] = p.entropies != nullptr ? valueAt(p.entropies, row) : 0.0;
    out.sums[Index::Ratio] = ratio;
    out.sums[Index::Tokens] = 1.0;
    out.gradient = weight * (slope - (clipped ? 0.0 : importance * whole));
    return out;
}

} // namespace policy

extern "C" __global__ void __launch_bounds__(1024) policy_loss(const __grid_constant__ policy::Params p) {
    using namespace policy;
    __shared__ double slots[32];
    pdl::wait();
    pdl::launchDependents();
    double sums[Index::kCount] = {};
    for (i64 row = threadIdx.x; row < p.rows; row += 1024) {
        const bool counts = p.targets[row] >= 0;
        double gradient = 0;
        if (counts) {
            const Terms terms = termsOf(p, row);
            gradient = terms.gradient;
#pragma unroll
            for (int i = 0; i < Index::kCount; ++i) {
                sums[i] += terms.sums[i];
            }
        }
        if (p.gradLogProbs != nullptr) {
            static_cast<Value*>(p.gradLogProbs)[row] = static_cast<Value>(gradient);
        }
    }
#pragma unroll
    for (int i = 0; i < Index::kCount; ++i) {
        const double sum = blockSum(sums[i], slots);
        if (threadIdx.x == 0) {
            p.sums[i] += sum;
        }
    }
}

} // namespace vt
