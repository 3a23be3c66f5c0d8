// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The gradient of Matmul's input as another Matmul.

#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/linear/matmul_gradients.h"

namespace vitrine::kernels {

/// A weight (out, in) is the transposed storage of the weight of the product that leads from out to in. A packed one
/// counts as transposed then: products on a GPU take it so, Matmul on the CPU does not.
Matmul asMatmul(const MatmulInputGradient& op);

} // namespace vitrine::kernels
