// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rules for a weight of a product.

#include "kernels/core/weight_view.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

/// There is a weight, a matrix or a stack of them, whose tensors have the shapes and dtypes of its format.
void checkWeight(const OpCheck& rule, const WeightView& weight, std::string_view field);

} // namespace vitrine::kernels
