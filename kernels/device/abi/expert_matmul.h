// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Grouped expert products in float32 arithmetic, for any dtypes and both storage orders.

#include "device/abi/packed_weight.h"

namespace vitrine::kernels::abi {

constexpr int kExpertMatmulAbi = 2;

struct ExpertMatmulParams {
    const void* x;        ///< (rows, in)
    const int* tileCount; ///< of ExpertSort, as the next two
    const int* tiles;
    const int* slots;
    const void* dense; ///< (experts, out, in), or (experts, in, out) when transposed, or null
    const void* bias;  ///< (experts, out), or null
    void* result;      ///< (pairs, out)
    long long xStride, biasStride, resultStride;
    int pairsPerRow; ///< pair p reads row p / pairsPerRow
    int in, out;
    PackedWeight packed; ///< (experts, out, in), of weights that are not dense
};

} // namespace vitrine::kernels::abi
