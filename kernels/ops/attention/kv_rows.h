// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows of quantized KV caches on the CPU, as kernels/ops/attention/kv_view.h defines them.

#include <cstdint>

#include "kernels/core/dtype.h"

namespace vitrine::kernels {

/// Writes `count` bytes to `out` and returns their scale. `dtype` is I8 or F8E4M3.
float quantizeKvRow(DType dtype, const float* row, std::int64_t count, void* out);

/// The reverse. Defined for float and double.
template <class C> void dequantizeKvRow(DType dtype, const void* row, float scale, std::int64_t count, C* out);

} // namespace vitrine::kernels
