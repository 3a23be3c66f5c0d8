// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One element's AdamW step, as AdamWStep of ops/optimizer/adamw_step.h computes it.

#include "device/abi/adamw.h"
#include "device/lib/types.cuh"

namespace vt {

__device__ __forceinline__ void adamWUpdate(const vitrine::kernels::abi::AdamWNumbers& step, float gradient,
                                            float& parameter, float& moment1, float& moment2) {
    moment1 = step.beta1 * moment1 + step.rest1 * gradient;
    moment2 = step.beta2 * moment2 + step.rest2 * gradient * gradient;
    parameter = parameter * step.decay - step.rate * (moment1 / (sqrtf(moment2) / step.root + step.epsilon));
}

/// The factor of the gradient; `scale` may be null.
__device__ __forceinline__ float gradientFactor(const float* scale) {
    return scale != nullptr ? *scale : 1.0F;
}

} // namespace vt
