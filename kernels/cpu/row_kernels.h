// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Inner loops of attention by SIMD level: rows of float32 that lie `stride` elements apart.

#include <cstdint>

#include "kernels/context/context.h"

namespace vitrine::kernels {

/// scores[i] = dot(q, keys row i) over `dim` elements, for `count` rows.
void dotRows(SimdLevel simd, const float* q, const float* keys, std::int64_t stride, std::int64_t count,
             std::int64_t dim, float* scores);
void dotRows(SimdLevel simd, const double* q, const double* keys, std::int64_t stride, std::int64_t count,
             std::int64_t dim, double* scores);

/// sums += weights[i] * values row i, rows in order.
void addScaledRows(SimdLevel simd, const float* weights, const float* values, std::int64_t stride, std::int64_t count,
                   std::int64_t dim, float* sums);
void addScaledRows(SimdLevel simd, const double* weights, const double* values, std::int64_t stride, std::int64_t count,
                   std::int64_t dim, double* sums);

} // namespace vitrine::kernels
