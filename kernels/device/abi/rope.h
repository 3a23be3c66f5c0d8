// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kRopeAbi = 3;

/// In place over (tokens, heads, VT_HEAD_DIM); `stride` elements between tokens, `headStride` between heads.
struct RopeParams {
    void* x;
    const int* positions;
    const float* inverseFrequency;
    long long stride;
    int tokens, heads;
    float attentionScale;
    int inverse; ///< 1: turns back
    int headStride;
    int interleaved; ///< 1: pairs are neighbours; VT_VECTOR is 1 then
};

} // namespace vitrine::kernels::abi
