// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The gradient of logits from that of log-probabilities, a block a row. VT_GRADIENT 1: as it is; 2: its dtype is
// narrower than that of the logits, whose memory it takes.

#include "device/abi/log_probs_backward.h"
#include "device/lib/pdl.cuh"
#include "device/loss/softmax_rows.cuh"

namespace vt {

// A block a multiprocessor is the least: with more in mind the compiler spills.
extern "C" __global__ void __launch_bounds__(VT_ROW_THREADS, 1)
    log_probs_backward(const __grid_constant__ vitrine::kernels::abi::LogProbsBackwardParams p) {
    using X = StorageOf<VT_X_DTYPE>;
    using Out = StorageOf<VT_GRAD_DTYPE>;
    const i64 row = blockIdx.x;
    const X* logits = static_cast<const X*>(p.logits) + row * p.logitsStride;
    Out* out = static_cast<Out*>(p.gradLogits) + row * p.gradStride;
    pdl::wait();
    pdl::launchDependents();
    const int target = p.targets[row];
    const float gradLogProb = target < 0 ? 0.0F : p.gradLogProbs[row];
    if (gradLogProb == 0.0F) {
        loss::writeZeros(p.vocab, out);
        return;
    }
    // Hosts check targets; a wrong one that comes from the device must show.
    const float share = target < p.vocab ? -gradLogProb * p.inverseTemperature : __int_as_float(0x7FC00000);
    const loss::ScaledLogit valueOf{p.softCap, p.scale};
    const loss::Gradient<loss::ScaledLogit> gradient{p.lse[row], share, share, valueOf, target};
    loss::writeGradient<VT_GRADIENT == 2>(logits, p.vocab, gradient, out);
}

} // namespace vt
