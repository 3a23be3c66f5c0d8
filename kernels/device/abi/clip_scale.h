// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kClipScaleAbi = 1;

struct ClipScaleParams {
    const double* squaredNorm;
    float* scale;
    float* norm;
    float maxNorm; ///< 0: no clipping
};

} // namespace vitrine::kernels::abi
