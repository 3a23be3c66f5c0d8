// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tensors of floats in and out of host memory as float32.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/tensor.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

/// `values` in the tensor's order; `to` is contiguous and has as many elements.
void uploadFloats(kernels::Context& context, std::span<const float> values, const kernels::TensorView& to);
/// Waits for the tensor. Zeros on Meta.
std::vector<float> downloadFloats(kernels::Context& context, const kernels::TensorView& from);
/// A matrix (rows, columns) as (columns, rows).
std::vector<float> transposedMatrix(const std::vector<float>& values, std::int64_t rows, std::int64_t columns);

} // namespace vitrine::engine
