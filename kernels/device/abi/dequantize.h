// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/packed_weight.h"

namespace vitrine::kernels::abi {

constexpr int kDequantizeAbi = 1;

struct DequantizeParams {
    PackedWeight weight;
    void* out;      ///< (rows, in), contiguous
    long long rows; ///< of all matrices
};

} // namespace vitrine::kernels::abi
