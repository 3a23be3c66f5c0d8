// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/nf4_scales.h"

namespace vitrine::kernels::abi {

constexpr int kDequantizeNf4Abi = 1;

struct DequantizeNf4Params {
    const void* data; ///< (groups, 32) bytes
    void* out;        ///< (groups, 64)
    long long groups;
    Nf4Scales scales;
};

} // namespace vitrine::kernels::abi
