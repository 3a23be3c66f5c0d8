// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kAdamWAbi = 1;

/// The numbers of a step: AdamWStep of ops/optimizer/adamw_step.h.
struct AdamWNumbers {
    float decay;
    float beta1, rest1;
    float beta2, rest2;
    float rate, root, epsilon;
};

/// n elements. Null: master without VT_MASTER, gradScale where there is no factor.
struct AdamWParams {
    void* parameter;
    float* master;
    const void* gradient;
    float* moment1;
    float* moment2;
    const float* gradScale;
    long long n;
    AdamWNumbers step;
};

} // namespace vitrine::kernels::abi
