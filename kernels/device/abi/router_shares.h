// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kRouterSharesAbi = 1;

struct RouterSharesParams {
    const void* logits; ///< (tokens, experts)
    const int* ids;     ///< (tokens, k)
    float* out;         ///< (tokens, 2 experts)
    long long logitsStride;
    int tokens, experts, k;
};

} // namespace vitrine::kernels::abi
