// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The gradient of a captured tensor from its 64-bit sums (flex_attention_terms.cuh); terms of several loads add up.

#include "device/abi/flex_attention.h"
#include "device/attention/flex_unit.cuh"
#include "device/lib/pdl.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(256)
    flex_capture_gradient(const __grid_constant__ vitrine::kernels::abi::FlexCaptureParams p) {
    pdl::wait();
    pdl::launchDependents();
    const i64 i = static_cast<i64>(blockIdx.x) * 256 + threadIdx.x;
    if (i >= p.count) {
        return;
    }
    double sum = 0;
    for (int load = 0; load < p.loads; ++load) {
        const double unit = flex::unitOf(*p.largest[load], p.bits);
        sum += static_cast<double>(static_cast<i64>(p.sums[load][i])) / unit;
    }
    if (p.isDouble != 0) {
        static_cast<double*>(p.out)[i] = sum;
    } else {
        static_cast<float*>(p.out)[i] = static_cast<float>(sum);
    }
}

} // namespace vt
