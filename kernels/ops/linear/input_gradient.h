// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The gradient of Matmul's input as another Matmul.

#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/linear/matmul_gradients.h"

namespace vitrine::kernels {

/// A weight (out, in) is the transposed storage of the weight of the product that leads from out to in. Dense weights
/// only.
Matmul asMatmul(const MatmulInputGradient& op);

} // namespace vitrine::kernels
