// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kRouterGroupsAbi = 1;

/// logits (tokens, VT_EXPERTS), `stride` elements between tokens; ids and weights (tokens, k).
struct RouterGroupsParams {
    const void* logits;
    const void* correction; ///< (VT_EXPERTS), or null: zeros
    int* ids;
    float* weights;
    long long stride;
    int tokens, k;
    int normalize;    ///< divide by the sum of the chosen
    int groups, kept; ///< of experts; kept == groups: all are chosen among
    float scale;      ///< of the weights
};

} // namespace vitrine::kernels::abi
