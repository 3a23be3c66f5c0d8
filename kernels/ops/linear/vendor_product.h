// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What CudaContext::multiply can be given.

#include "kernels/core/dtype.h"

namespace vitrine::kernels {

/// Whether cuBLASLt multiplies these: equal float types of x and weight, a result of the same type or float32.
inline bool vendorMultiplies(DType x, DType weight, DType out) {
    const bool known = x == DType::BF16 || x == DType::F16 || x == DType::F32 || x == DType::F64;
    return known && weight == x && (out == x || (out == DType::F32 && x != DType::F64));
}

} // namespace vitrine::kernels
