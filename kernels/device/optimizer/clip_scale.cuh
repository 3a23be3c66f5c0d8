// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The factor that clips gradients, from the sum of their squares. One thread.

#include "device/abi/clip_scale.h"
#include "device/lib/pdl.cuh"

namespace vt {

extern "C" __global__ void __launch_bounds__(32)
    clip_scale(const __grid_constant__ vitrine::kernels::abi::ClipScaleParams p) {
    pdl::wait();
    pdl::launchDependents();
    if (threadIdx.x == 0) {
        const double norm = sqrt(*p.squaredNorm);
        const double scale = static_cast<double>(p.maxNorm) / (norm + 1e-6);
        *p.norm = static_cast<float>(norm);
        // A comparison that NaN passes by: the scale is NaN then.
        *p.scale = p.maxNorm == 0.0F || scale > 1.0 ? 1.0F : static_cast<float>(scale);
    }
}

} // namespace vt
