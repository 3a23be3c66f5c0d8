// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The sum of losses in double by one block, always in the same order.

#include "device/abi/sum_losses.h"
#include "device/lib/double_sums.cuh"
#include "device/lib/pdl.cuh"

namespace vt {

#if VT_OUT_DTYPE == VT_F64
using LossSum = double;
#else
using LossSum = float;
#endif

extern "C" __global__ void __launch_bounds__(1024)
    sum_losses(const __grid_constant__ vitrine::kernels::abi::SumLossesParams p) {
    __shared__ double slots[32];
    pdl::wait();
    pdl::launchDependents();
    double sum = 0;
    for (i64 row = threadIdx.x; row < p.rows; row += 1024) {
        sum += static_cast<double>(p.losses[row]);
    }
    sum = blockSum(sum, slots);
    if (threadIdx.x == 0) {
        LossSum* out = static_cast<LossSum*>(p.out);
        *out = static_cast<LossSum>(p.accumulate ? static_cast<double>(*out) + sum : sum);
    }
}

} // namespace vt
