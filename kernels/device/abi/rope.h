// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kRopeAbi = 2;

/// In place over (tokens, heads, VT_HEAD_DIM); `stride` elements between tokens.
struct RopeParams {
    void* x;
    const int* positions;
    const float* inverseFrequency;
    long long stride;
    int tokens, heads;
    float attentionScale;
    int inverse; ///< 1: turns back
};

} // namespace vitrine::kernels::abi
