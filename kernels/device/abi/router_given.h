// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kRouterGivenAbi = 1;

/// logits (tokens, experts), `stride` elements between tokens; given, ids and weights (tokens, k). ids and weights hold
/// the router's own choice, and after it the given one where a row of `given` does not begin with a negative id.
struct RouterGivenParams {
    const void* logits;
    const int* given;
    int* ids;
    float* weights;
    float* differing; ///< (tokens): given ids that the router did not choose; or null
    long long stride;
    int tokens, experts, k;
    int order;     ///< RouterOrder: softmax over the given; softmax over all; sigmoid
    int normalize; ///< divide by the sum of the given
    float scale;   ///< of a sigmoid's weights
};

} // namespace vitrine::kernels::abi
