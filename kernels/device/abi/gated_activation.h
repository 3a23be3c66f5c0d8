// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kGatedActivationAbi = 1;

/// out (rows, n) from gateUp (rows, 2 n); strides in elements.
struct GatedActivationParams {
    const void* gateUp;
    void* out;
    long long gateUpStride, outStride;
    long long rows, n;
    float alpha, limit;
};

} // namespace vitrine::kernels::abi
