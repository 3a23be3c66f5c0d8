// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kSumLossesAbi = 1;

/// out = the sum of losses, or out += it.
struct SumLossesParams {
    const float* losses;
    void* out;
    long long rows;
    int accumulate;
};

} // namespace vitrine::kernels::abi
