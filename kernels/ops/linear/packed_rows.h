// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which products with packed weights the kernel packed_rows multiplies as they are stored. Shapes and types decide, so
// that a plan knows what a run will do; addresses that are not aligned are looked at when the kernel starts.

#include "kernels/ops/linear/matmul.h"

namespace vitrine::kernels {

/// Rows up to which a single weight goes this way. From there on it is better expanded to BF16 and multiplied by
/// cuBLASLt.
inline constexpr std::int64_t kMaxPackedRows = 64;

/// Whether BF16 rows times the weight, or times the matrices of a stack, are such products: INT4 or FP8 that is neither
/// transposed nor ordered, with inputs in whole 32s and groups that fit the kernel's steps of 128 inputs.
bool takesPackedRows(DType x, const WeightView& weight, DType out);

/// Whether all rows of an op go this way: at most kMaxPackedRows, without adapter and scale.
bool takesPackedRows(const Matmul& op);

/// Up to so many rows of x several weights of this format share a launch.
std::int64_t packedRowsTogether(WeightFormat format);

} // namespace vitrine::kernels
