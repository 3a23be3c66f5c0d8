// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/linear_backward.h"

#include "kernels/ops/experts/grouped_matmul.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/linear/matmul_gradients.h"
#include "kernels/ops/rowwise/dropout.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/sum_rows.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

LinearBackward::LinearBackward(const OpRunner& runner, const kernels::LinearView& linear, const GradientMap& gradients,
                               const TensorView& gradOut, const ExpertGroups* groups)
    : runner_(runner), linear_(linear), adapter_(linear.merged.empty() ? linear.adapter : linear.merged),
      gradients_(gradients), gradOut_(gradOut), groups_(groups) {
    if (!adapter_.empty()) {
        low_ = runner.make(MemoryCategory::Gradients, "adapter.gradient", runner.compute(),
                           Shape{gradOut.shape[0], adapter_.rank()});
        inputGradient(gradOut, kernels::denseWeight(adapter_.b), adapter_.scale, low_.view(), false);
    }
}

bool LinearBackward::needsInput() const {
    return gradients_.has(linear_.weight.data) || gradients_.has(adapter_.a) || gradients_.has(adapter_.b);
}

void LinearBackward::input(const TensorView& gradX, bool accumulate) const {
    if (groups_ != nullptr) {
        kernels::GroupedInputGradient op{gradOut_, groups_->starts, linear_.weight, 1, accumulate, gradX};
        if (!linear_.adapter.empty()) {
            op.low = low_.view();
            op.adapterA = linear_.adapter.a;
        }
        runner_.run(op);
        return;
    }
    inputGradient(gradOut_, linear_.weight, 1, gradX, accumulate);
    if (linear_.adapter.empty()) {
        return;
    }
    if (linear_.adapter.dropout.probability > 0) {
        addThroughDropout(gradX);
    } else {
        inputGradient(low_.view(), kernels::denseWeight(linear_.adapter.a), 1, gradX, true);
    }
}

void LinearBackward::parameters(const TensorView& x) const {
    addWeightGradient(x);
    addAdapterGradients(x);
    const TensorView bias = gradients_.of(linear_.bias);
    if (bias.empty()) {
        return;
    }
    if (groups_ != nullptr) {
        runner_.run(kernels::GroupedBiasGradient{gradOut_, groups_->rowWeights, groups_->starts, bias});
    } else {
        runner_.run(kernels::SumRows{gradOut_, bias, true, {}});
    }
}

void LinearBackward::addWeightGradient(const TensorView& x) const {
    const TensorView gradient = gradients_.of(linear_.weight.data);
    if (gradient.empty()) {
        return;
    }
    if (linear_.weight.transposed) {
        weightGradient(gradOut_, x, gradient);
    } else {
        weightGradient(x, gradOut_, gradient);
    }
}

void LinearBackward::addThroughDropout(const TensorView& gradX) const {
    const Tensor part = runner_.make(MemoryCategory::Gradients, "adapter.input.gradient", gradX.dtype, gradX.shape);
    inputGradient(low_.view(), kernels::denseWeight(linear_.adapter.a), 1, part.view(), false);
    drop(part.view(), part.view());
    runner_.run(kernels::Add{gradX, part.view(), gradX});
}

void LinearBackward::drop(const TensorView& x, const TensorView& out) const {
    const kernels::AdapterDropout& dropout = adapter_.dropout;
    runner_.run(kernels::Dropout{x, out, dropout.probability, dropout.seed, dropout.stream, dropout.firstRow});
}

void LinearBackward::addAdapterGradients(const TensorView& input) const {
    TensorView x = input;
    Tensor dropped;
    if (adapter_.dropout.probability > 0 && (gradients_.has(adapter_.a) || gradients_.has(adapter_.b))) {
        dropped = runner_.activation("adapter.input", input.shape);
        x = dropped.view();
        drop(input, x);
    }
    if (const TensorView gradient = gradients_.of(adapter_.b); !gradient.empty()) {
        const Tensor hidden = runner_.activation("adapter.hidden", Shape{x.shape[0], adapter_.rank()});
        multiply(x, adapter_.a, adapter_.scale, hidden.view());
        weightGradient(hidden.view(), gradOut_, gradient);
    }
    if (const TensorView gradient = gradients_.of(adapter_.a); !gradient.empty()) {
        weightGradient(x, low_.view(), gradient);
    }
}

void LinearBackward::multiply(const TensorView& x, const TensorView& matrix, float scale, const TensorView& out) const {
    if (groups_ != nullptr) {
        kernels::GroupedMatmul op;
        op.x = x;
        op.starts = groups_->starts;
        op.linear.weight = kernels::denseWeight(matrix);
        op.scale = scale;
        op.out = out;
        runner_.run(op);
        return;
    }
    kernels::Matmul op;
    op.x = x;
    op.weight = kernels::denseWeight(matrix);
    op.scale = scale;
    op.out = out;
    runner_.run(op);
}

void LinearBackward::inputGradient(const TensorView& gradOut, const kernels::WeightView& weight, float scale,
                                   const TensorView& gradX, bool accumulate) const {
    if (groups_ != nullptr) {
        runner_.run(kernels::GroupedInputGradient{gradOut, groups_->starts, weight, scale, accumulate, gradX, {}});
    } else {
        runner_.run(kernels::MatmulInputGradient{gradOut, weight, gradX, accumulate, {}, scale});
    }
}

void LinearBackward::weightGradient(const TensorView& x, const TensorView& gradOut, const TensorView& gradient) const {
    if (groups_ != nullptr) {
        runner_.run(kernels::GroupedWeightGradient{x, gradOut, groups_->starts, true, gradient});
    } else {
        runner_.run(kernels::MatmulWeightGradient{x, gradOut, gradient, true});
    }
}

} // namespace vitrine::engine
