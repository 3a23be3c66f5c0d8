// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kRouterTopkAbi = 1;

/// logits (tokens, VT_EXPERTS), `stride` elements between tokens; ids and weights (tokens, k).
struct RouterTopkParams {
    const void* logits;
    int* ids;
    float* weights;
    long long stride;
    int tokens, k;
    int normalize; ///< softmax first: divide by the sum of the chosen
};

} // namespace vitrine::kernels::abi
