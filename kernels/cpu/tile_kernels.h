// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inner loops of products of many rows with transposed weights, by SIMD level. Weights come as panels:
// kPanelOutputs outputs side by side, one line for each element of the contracted axis. Every sum runs along that axis
// in order, as sums of few rows do, so a result does not depend on the other rows.
//
// Why not a BLAS: Debian's serial OpenBLAS 0.3.21 is built without locking, and two threads that call its sgemm at the
// same time overwrite each other's packing buffers; it also knows no AVX-512 on processors newer than itself.

#include <cstdint>

#include "kernels/context/context.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kPanelOutputs = 32;

/// sums[r][o] (+)= sum over i of x[r][i] * panel[i][o], for all outputs of the panel.
struct TileCall {
    const float* x = nullptr;
    std::int64_t xStride = 0;
    std::int64_t rows = 0;
    const float* panel = nullptr; ///< (depth, kPanelOutputs)
    std::int64_t depth = 0;
    float* sums = nullptr;
    std::int64_t sumsStride = 0;
    bool add = false; ///< false: overwrite sums
};

void multiplyPanel(SimdLevel simd, const TileCall& call);

} // namespace vitrine::kernels
