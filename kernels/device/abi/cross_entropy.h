// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kCrossEntropyAbi = 1;

/// Rows of `vocab` logits; strides in elements. The gradient may take the place of the logits.
struct CrossEntropyParams {
    const void* logits;
    const int* targets; ///< negative: the row is ignored
    float* losses;
    void* gradLogits; ///< null without VT_GRADIENT
    long long logitsStride, gradStride;
    int vocab;
    float softCap, gradScale;
};

} // namespace vitrine::kernels::abi
