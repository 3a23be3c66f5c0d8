// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kPolicyLossAbi = 1;

/// What PolicyLoss sums over the tokens that count, as indices.
struct PolicySums {
    enum Index : int {
        Loss,      ///< weighted
        Kl,        ///< k3 of reference - logProbs; 0 without a reference
        Clipped,   ///< tokens whose clamped term is the smaller one
        Entropy,   ///< 0 without entropies
        Gap,       ///< |old - rollout|; 0 without rollout
        Mismatch,  ///< k3 of old - rollout; 0 without rollout
        Ratio,     ///< exp(logProbs - old)
        Truncated, ///< tokens whose importance weight was cut to the cap
        Tokens,    ///< that count
    };
    static constexpr int kCount = Tokens + 1;
};

/// One value a token; see PolicyLoss.
struct PolicyLossParams {
    const void* logProbs;
    const int* targets; ///< negative: the token does not count
    const float* advantages;
    const float* weights;
    const void* old;        ///< may be null
    const float* rollout;   ///< may be null
    const float* reference; ///< may be null
    const void* entropies;  ///< of the dtype of logProbs; may be null
    void* gradLogProbs;     ///< of the dtype of logProbs; may be null
    double* sums;           ///< PolicySums::kCount of them
    long long rows;
    double clipLow, clipHigh, klCoefficient;
    double importanceCap; ///< 0: none
};

} // namespace vitrine::kernels::abi
