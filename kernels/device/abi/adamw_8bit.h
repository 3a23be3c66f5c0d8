// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/adamw.h"

namespace vitrine::kernels::abi {

constexpr int kAdamW8BitAbi = 1;

/// n elements in blocks of 256. Null: master without VT_MASTER, gradScale where there is no factor.
struct AdamW8BitParams {
    void* parameter;
    float* master;
    const void* gradient;
    unsigned char* code1;
    unsigned char* code2;
    float* absmax1; ///< (blocks)
    float* absmax2;
    const float* maps; ///< (2, 256)
    const float* gradScale;
    long long n;
    AdamWNumbers step;
};

} // namespace vitrine::kernels::abi
