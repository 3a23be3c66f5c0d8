// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kRouteAbi = 1;

/// normed = norm(x), logits = normed router^T + bias, then the k largest; router (VT_EXPERTS, VT_DIM), contiguous; ids
/// and weights (tokens, k). bias may be null. Strides in elements.
struct RouteParams {
    const void* x;
    const void* normWeight;
    const void* router;
    const void* bias;
    void* normed;
    int* ids;
    float* weights;
    long long xStride, normedStride;
    int tokens, k;
    int normalize; ///< softmax first: divide by the sum of the chosen
    float eps;
};

} // namespace vitrine::kernels::abi
