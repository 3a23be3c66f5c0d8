// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Dot-product kernels by SIMD level. y[r * kGemvOutputs + o] = dot(matrix row outBegin + o, x row r), for at most
// kGemvRows rows and kGemvOutputs outputs. Each sum runs in an order that depends on the level and on `in` only.

#include "kernels/ops/weight_product.h"

namespace vitrine::kernels {

struct GemvCall {
    MatrixRef matrix;
    const float* x[kGemvRows] = {}; ///< prepared rows
    std::int64_t rows = 0;
    std::int64_t outBegin = 0;
    std::int64_t outCount = 0;
    float* y = nullptr;
};

void gemvScalar(const GemvCall& call);
void gemvAvx2(const GemvCall& call);
void gemvAvx512(const GemvCall& call);

/// Where element i of a row lies in its prepared form, per level and format (i within a block of 128).
std::int64_t preparedIndexAvx2(DType dtype, std::int64_t i);
std::int64_t preparedIndexAvx512(DType dtype, std::int64_t i);

} // namespace vitrine::kernels
