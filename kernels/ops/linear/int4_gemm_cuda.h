// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of more than a few BF16 rows with INT4 weights on Hopper's tensor cores: weights become BF16 in registers,
// and nothing is expanded.

#include "kernels/cuda/cuda_context.h"
#include "kernels/ops/linear/matmul.h"

namespace vitrine::kernels {

/// Launches and says true, or does nothing and says false: for few rows, on other devices, and when shapes, types or
/// alignment do not allow it.
bool multiplyInt4Tiles(CudaContext& context, const Matmul& op);

} // namespace vitrine::kernels
