// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Cross-entropy of rows of logits, a block a row. VT_GRADIENT 0: losses only; 1: with the gradient; 2: its dtype is
// narrower than that of the logits, whose memory it takes.

#include "device/abi/cross_entropy.h"
#include "device/lib/pdl.cuh"
#include "device/loss/softmax_rows.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(VT_ROW_THREADS)
    cross_entropy(const __grid_constant__ vitrine::kernels::abi::CrossEntropyParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    using Out = StorageOf<VT_GRAD_DTYPE>;
    const i64 row = blockIdx.x;
    const X* logits = static_cast<const X*>(p.logits) + row * p.logitsStride;
    Out* out = static_cast<Out*>(p.gradLogits) + (VT_GRADIENT ? row * p.gradStride : 0);
    pdl::wait();
    pdl::launchDependents();
    const int target = p.targets[row];
    if (target < 0) {
        if (threadIdx.x == 0) {
            p.losses[row] = 0.0F;
        }
        if constexpr (VT_GRADIENT) {
            loss::writeZeros(p.vocab, out);
        }
        return;
    }
    // Hosts check targets; a wrong one that comes from the device must show and must not read elsewhere.
    const float nan = __int_as_float(0x7FC00000);
    const loss::CappedLogit valueOf{p.softCap};
    const float atTarget = target < p.vocab ? valueOf(toFloat(logits[target])) : nan;
    const auto sums = loss::sumsOfRow<loss::Sums>(logits, p.vocab, valueOf);
    if (threadIdx.x == 0) {
        p.losses[row] = logf(sums.sum) + sums.best - atTarget;
    }
    if constexpr (VT_GRADIENT) {
        const float share = target < p.vocab ? p.gradScale / sums.sum : nan;
        const loss::Gradient<loss::CappedLogit> gradient{sums.best, share, p.gradScale, valueOf, target};
        loss::writeGradient<VT_GRADIENT == 2>(logits, p.vocab, gradient, out);
    }
}

} // namespace vt
