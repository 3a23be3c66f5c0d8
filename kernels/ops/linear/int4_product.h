// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which products with INT4 weights the kernels packed_rows and int4_gemm multiply as they are stored. Shapes and types
// decide, so that a plan knows what a run will do; addresses that are not aligned are looked at when a kernel starts.

#include "kernels/ops/linear/matmul.h"

namespace vitrine::kernels {

/// Whether x (rows, in) times the weight is such a product: groups of whole 32 inputs, no order, BF16 rows.
bool takesInt4(DType x, const WeightView& weight, DType out);

/// Whether int4_gemm multiplies all rows of an op: no adapter, no scale, one matrix, groups that its chunks of 256
/// inputs hold.
bool takesInt4Tiles(const Matmul& op);

} // namespace vitrine::kernels
