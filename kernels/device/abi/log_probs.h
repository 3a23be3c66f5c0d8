// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kLogProbsAbi = 1;

/// Rows of `vocab` logits; strides in elements.
struct LogProbsParams {
    const void* logits;
    const int* targets; ///< negative: the row is ignored
    float* logProbs;
    float* entropies; ///< null without VT_ENTROPY
    float* lse;       ///< may be null
    long long logitsStride;
    int vocab;
    float softCap;
    float scale; ///< of what the soft cap gives: softCap / temperature, or 1 / temperature without a soft cap
};

} // namespace vitrine::kernels::abi
