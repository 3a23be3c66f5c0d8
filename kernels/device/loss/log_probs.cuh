// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Log-probabilities of the targets of rows of logits, a block a row; with VT_ENTROPY also the entropy of each row.

#include "device/abi/log_probs.h"
#include "device/lib/pdl.cuh"
#include "device/loss/softmax_rows.cuh"

namespace vt {

namespace loss {

#if VT_ENTROPY
using RowSums = EntropySums;
__device__ __forceinline__ float entropyOf(const RowSums& sums) {
    return logf(sums.sum) - sums.product / sums.sum;
}
#else
using RowSums = Sums;
__device__ __forceinline__ float entropyOf(const RowSums&) {
    return 0.0F;
}
#endif

/// By one thread.
__device__ __forceinline__ void writeRow(const vitrine::kernels::abi::LogProbsParams& p, i64 row, float logProb,
                                         float entropy, float lse) {
    p.logProbs[row] = logProb;
    if constexpr (VT_ENTROPY) {
        p.entropies[row] = entropy;
    }
    if (p.lse != nullptr) {
        p.lse[row] = lse;
    }
}

} // namespace loss

extern "C" __global__ void __launch_bounds__(VT_ROW_THREADS)
    log_probs(const __grid_constant__ vitrine::kernels::abi::LogProbsParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    const i64 row = blockIdx.x;
    const X* logits = static_cast<const X*>(p.logits) + row * p.logitsStride;
    pdl::wait();
    pdl::launchDependents();
    const int target = p.targets[row];
    if (target < 0) {
        if (threadIdx.x == 0) {
            loss::writeRow(p, row, 0.0F, 0.0F, 0.0F);
        }
        return;
    }
    // Hosts check targets; a wrong one that comes from the device must show and must not read elsewhere.
    const float nan = __int_as_float(0x7FC00000);
    const loss::ScaledLogit valueOf{p.softCap, p.scale};
    const float atTarget = target < p.vocab ? valueOf(toFloat(logits[target])) : nan;
    auto sums = loss::sumsOfRow<loss::RowSums>(logits, p.vocab, valueOf);
    if (threadIdx.x == 0) {
        sums.sum = target < p.vocab ? sums.sum : nan;
        const float logSum = logf(sums.sum);
        loss::writeRow(p, row, atTarget - sums.best - logSum, loss::entropyOf(sums), logSum + sums.best);
    }
}

} // namespace vt
