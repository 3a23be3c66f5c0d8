// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/norm_backward.h"

#include "base/error.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/rms_norm.h"

namespace vitrine::engine {

using kernels::Tensor;
using kernels::TensorView;

void normBackward(const OpRunner& runner, const kernels::NormWeights& norm, const GradientMap& gradients,
                  const TensorView& x, const TensorView& gradOut, const TensorView& gradResidual,
                  const TensorView& gradX) {
    if (norm.weight.empty()) {
        if (gradResidual.empty()) {
            throw base::Internal("normBackward: neither a norm nor a residual");
        }
        runner.run(kernels::Add{gradResidual, gradOut, gradX});
        return;
    }
    kernels::RmsNormBackward op;
    op.forward = kernels::RmsNorm{x, norm.weight, {}, norm.eps, norm.form};
    op.gradOut = gradOut;
    op.gradResidual = gradResidual;
    op.gradX = gradX;
    op.gradWeight = gradients.of(norm.weight);
    runner.run(op);
}

Tensor branchBackward(const OpRunner& runner, const kernels::NormWeights& norm, const GradientMap& gradients,
                      const Tensor& branch, const TensorView& gradOut) {
    if (norm.weight.empty()) {
        return {};
    }
    Tensor out = runner.make(base::MemoryCategory::Gradients, "branch.gradient", runner.compute(), gradOut.shape);
    normBackward(runner, norm, gradients, branch.view(), gradOut, {}, out.view());
    return out;
}

} // namespace vitrine::engine
