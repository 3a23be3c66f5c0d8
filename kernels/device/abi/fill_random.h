// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kFillRandomAbi = 1;

struct FillRandomParams {
    void* out;
    long long elements;
    unsigned seed, stream; ///< the Philox key
    float center, deviation;
};

} // namespace vitrine::kernels::abi
