// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The backward pass of a linear with or without an adapter: one matrix, or a stack over rows that lie expert by expert.
// With y = x W^T + bias + s (x A^T) B^T and g the gradient of y:
//   dx = g W + u A, where u = s g B
//   dW = g^T x,  dbias = sum of g,  dA = u^T x,  dB = g^T (s x A^T)
// With dropout D of the adapter's input, y has D(x) A^T, dx has D(u A), and dA and dB have D(x) in the place of x.
// An adapter that the weight has in it already (LinearView::merged) has the same gradients, and dx = g W: if W was
// rounded, the gradients pass straight through the rounding. Frozen tensors cost nothing.

#include "engine/model/op_runner.h"
#include "engine/training/parameters/gradient_map.h"
#include "kernels/ops/linear/linear_view.h"

namespace vitrine::engine {

/// Rows of experts; see kernels/ops/experts/group_pairs.h.
struct ExpertGroups {
    kernels::TensorView starts;     ///< (experts + 1) I32
    kernels::TensorView rowWeights; ///< (rows) F32 or empty: weights[r] multiplies gradOut[r] in the bias' gradient
};

/// The backward pass of one use of a linear. The tensors outlive it.
class LinearBackward {
public:
    LinearBackward(const OpRunner& runner, const kernels::LinearView& linear, const GradientMap& gradients,
                   const kernels::TensorView& gradOut, const ExpertGroups* groups = nullptr);

    /// gradX (rows, in) becomes the gradient of the input, or it is added to it.
    void input(const kernels::TensorView& gradX, bool accumulate) const;
    /// Adds to the gradients of the trained tensors. `x` (rows, in) is what the forward pass multiplied.
    void parameters(const kernels::TensorView& x) const;
    /// Whether parameters() reads x.
    bool needsInput() const;

private:
    void addWeightGradient(const kernels::TensorView& x) const;
    void addAdapterGradients(const kernels::TensorView& x) const;
    void addThroughDropout(const kernels::TensorView& gradX) const;
    void drop(const kernels::TensorView& x, const kernels::TensorView& out) const;
    void multiply(const kernels::TensorView& x, const kernels::TensorView& matrix, float scale,
                  const kernels::TensorView& out) const;
    void inputGradient(const kernels::TensorView& gradOut, const kernels::WeightView& weight, float scale,
                       const kernels::TensorView& gradX, bool accumulate) const;
    void weightGradient(const kernels::TensorView& x, const kernels::TensorView& gradOut,
                        const kernels::TensorView& gradient) const;

    const OpRunner& runner_;
    const kernels::LinearView& linear_;
    const kernels::AdapterView& adapter_; ///< beside the weight or in it; or empty
    const GradientMap& gradients_;
    kernels::TensorView gradOut_;
    const ExpertGroups* groups_; ///< null: one matrix
    kernels::Tensor low_;        ///< u above, (rows, rank); empty without an adapter
};

} // namespace vitrine::engine
