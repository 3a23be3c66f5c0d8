// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kLogProbsBackwardAbi = 1;

/// Rows of `vocab` logits; strides in elements. The gradient may take the place of the logits.
struct LogProbsBackwardParams {
    const void* logits;
    const int* targets; ///< negative: the row is ignored
    const float* lse;
    const float* gradLogProbs;
    void* gradLogits;
    long long logitsStride, gradStride;
    int vocab;
    float softCap, inverseTemperature;
    float scale; ///< as in LogProbsParams
};

} // namespace vitrine::kernels::abi
