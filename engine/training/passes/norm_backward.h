// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The backward pass of the norms around a layer's branches.

#include "engine/model/op_runner.h"
#include "engine/training/parameters/gradient_map.h"
#include "kernels/ops/linear/linear_view.h"

namespace vitrine::engine {

/// gradX = gradResidual + the gradient of norm(x), from gradOut. Without a norm: gradResidual + gradOut. gradResidual
/// may be empty; gradX may be either.
void normBackward(const OpRunner& runner, const kernels::NormWeights& norm, const GradientMap& gradients,
                  const kernels::TensorView& x, const kernels::TensorView& gradOut,
                  const kernels::TensorView& gradResidual, const kernels::TensorView& gradX);

/// The gradient of a branch from that of norm(branch). Empty where the layer has no norm after the branch.
kernels::Tensor branchBackward(const OpRunner& runner, const kernels::NormWeights& norm, const GradientMap& gradients,
                               const kernels::Tensor& branch, const kernels::TensorView& gradOut);

} // namespace vitrine::engine
