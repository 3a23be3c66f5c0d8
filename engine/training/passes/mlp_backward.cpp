// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/model_config.h"
#include "engine/training/passes/layer_backward.h"
#include "engine/training/passes/linear_backward.h"
#include "engine/training/passes/norm_backward.h"
#include "kernels/ops/experts/group_pairs.h"
#include "kernels/ops/experts/grouped_matmul.h"
#include "kernels/ops/experts/moe.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/gated_activation.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

namespace {

Tensor gradientTensor(const OpRunner& runner, std::string_view name, const Shape& shape) {
    return runner.make(MemoryCategory::Gradients, name, runner.compute(), shape);
}

/// Columns [begin, begin + count) of rows.
TensorView columns(const TensorView& rows, std::int64_t begin, std::int64_t count) {
    return kernels::slice(rows, 1, begin, begin + count);
}

void denseBackward(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer,
                   const GradientMap& gradients, const TensorView& normed, const MlpActivations& kept,
                   const TensorView& gradBranch, const TensorView& gradNormed) {
    const std::int64_t width = layer.gate.weight.outFeatures();
    const Shape shape{normed.shape[0], width};
    const TensorView gateUp = kept.gateUp.view(); // its gradient replaces it
    {
        const Tensor gradActive = gradientTensor(runner, "mlp.active.gradient", shape);
        const LinearBackward down(runner, layer.down, gradients, gradBranch);
        down.input(gradActive.view(), false);
        Tensor active;
        if (down.needsInput()) {
            active = runner.activation("mlp.active", shape);
        }
        kernels::GatedActivationBackward op;
        op.forward = {gateUp, active.view(), config.activation, kernels::GateLayout::Halves};
        op.gradOut = gradActive.view();
        op.gradGateUp = gateUp;
        runner.run(op);
        down.parameters(active.view());
    }
    const LinearBackward gate(runner, layer.gate, gradients, columns(gateUp, 0, width));
    gate.input(gradNormed, false);
    gate.parameters(normed);
    const LinearBackward up(runner, layer.up, gradients, columns(gateUp, width, width));
    up.input(gradNormed, true);
    up.parameters(normed);
}

/// The backward pass of experts over rows that lie expert by expert.
class ExpertBackward {
public:
    ExpertBackward(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer,
                   const GradientMap& gradients, MlpActivations& kept)
        : runner_(runner), config_(config), layer_(layer), gradients_(gradients), kept_(kept),
          rows_(kept.pairs.view().shape[0]) {
        rowWeights_ = floats("expert_weights.sorted");
        permute(kept.weights.view(), kept.pairs.view(), rowWeights_.view());
    }

    void run(const TensorView& gradOut, const TensorView& gradNormed) {
        const TensorView gradGateUp = kept_.gateUp.view(); // its gradient replaces it
        throughDown(gradOut);
        const ExpertGroups groups{kept_.starts.view(), {}};
        const LinearBackward gateUp(runner_, layer_.gateUp, gradients_, gradGateUp, &groups);
        gateUp.parameters(kept_.rows.view());
        // The gradient of the rows replaces them.
        gateUp.input(kept_.rows.view(), false);
        kernels::MoeCombine sum;
        sum.x = kept_.rows.view();
        sum.places = kept_.places.view();
        sum.out = gradNormed;
        runner_.run(sum);
    }

    /// (tokens, k) F32: the gradient of each choice's weight, dOut . (W h + b) = (W^T dOut) . h + dOut . b.
    const TensorView& gradWeights() const { return gradWeights_.view(); }

private:
    Tensor floats(std::string_view name) const {
        return runner_.make(MemoryCategory::Gradients, name, DType::F32, Shape{rows_});
    }

    /// out[i] = values[places[i]].
    void permute(const TensorView& values, const TensorView& places, const TensorView& out) const {
        runner_.run(kernels::GatherPairs{kernels::reshaped(values, Shape{rows_, 1}), places,
                                         kernels::reshaped(out, Shape{rows_, 1})});
    }

    void throughDown(const TensorView& gradOut) {
        const Tensor gradResults = gradientTensor(runner_, "expert_results.gradient", Shape{rows_, gradOut.shape[1]});
        runner_.run(kernels::GatherPairs{gradOut, kept_.pairs.view(), gradResults.view()});
        const Shape shape{rows_, layer_.down.weight.inFeatures()};
        const ExpertGroups groups{kept_.starts.view(), rowWeights_.view()};
        const LinearBackward down(runner_, layer_.down, gradients_, gradResults.view(), &groups);
        const Tensor gradActive = gradientTensor(runner_, "expert_active.gradient", shape);
        down.input(gradActive.view(), false);
        Tensor active;
        if (down.needsInput()) {
            active = runner_.activation("expert_active", shape);
        }
        const Tensor dots = floats("expert_dots");
        kernels::GatedActivationBackward op;
        op.forward = {kept_.gateUp.view(),
                      active.view(),
                      config_.activation,
                      config_.gateLayout,
                      static_cast<float>(config_.swigluAlpha),
                      static_cast<float>(config_.swigluLimit)};
        op.gradOut = gradActive.view();
        op.rowWeights = rowWeights_.view();
        op.rowDots = dots.view();
        op.gradGateUp = kept_.gateUp.view();
        runner_.run(op);
        if (!layer_.down.bias.empty()) {
            runner_.run(kernels::GroupedDots{gradResults.view(), kept_.starts.view(), layer_.down.bias, dots.view()});
        }
        gradWeights_ =
            runner_.make(MemoryCategory::Gradients, "expert_weights.gradient", DType::F32, kept_.weights.view().shape);
        permute(dots.view(), kept_.places.view(), gradWeights_.view());
        if (!active.empty()) {
            runner_.run(kernels::ScaleRows{active.view(), rowWeights_.view(), active.view()});
        }
        down.parameters(active.view());
    }

    const OpRunner& runner_;
    const ModelConfig& config_;
    const DecoderLayer& layer_;
    const GradientMap& gradients_;
    MlpActivations& kept_;
    std::int64_t rows_;
    Tensor rowWeights_; ///< (rows) F32
    Tensor gradWeights_;
};

void expertsBackward(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer,
                     const GradientMap& gradients, MlpActivations& kept, const TensorView& gradOut,
                     const TensorView& gradNormed, const TensorView& gradProbabilities) {
    ExpertBackward experts(runner, config, layer, gradients, kept);
    experts.run(gradOut, gradNormed);
    for (Tensor* used : {&kept.gateUp, &kept.rows, &kept.starts, &kept.pairs, &kept.places}) {
        used->reset();
    }
    const TensorView logits = kept.routerLogits.view();
    const Tensor gradLogits = gradientTensor(runner, "router_logits.gradient", logits.shape);
    kernels::RouterTopKBackward op;
    op.forward = {logits, kept.ids.view(), kept.weights.view(), config.routerOrder, config.routerNormalize};
    op.gradWeights = experts.gradWeights();
    op.gradProbabilities = gradProbabilities;
    op.gradLogits = gradLogits.view();
    runner.run(op);
    const LinearBackward router(runner, layer.router, gradients, gradLogits.view());
    router.input(gradNormed, true);
    router.parameters(kept.normed.view());
}

} // namespace

void mlpBackward(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer,
                 const GradientMap& gradients, const TensorView& x, MlpActivations& kept, const TensorView& gradOut,
                 const TensorView& gradX, const TensorView& gradProbabilities) {
    const Tensor gradNormed = gradientTensor(runner, "mlp.normed.gradient", x.shape);
    if (layer.config.moe) {
        expertsBackward(runner, config, layer, gradients, kept, gradOut, gradNormed.view(), gradProbabilities);
    } else {
        const Tensor branch = branchBackward(runner, layer.mlpPostNorm, gradients, kept.branch, gradOut);
        const TensorView normed = kept.normed.empty() ? x : kept.normed.view();
        denseBackward(runner, config, layer, gradients, normed, kept, branch.empty() ? gradOut : branch.view(),
                      gradNormed.view());
    }
    kept = {};
    normBackward(runner, layer.mlpNorm, gradients, x, gradNormed.view(), gradOut, gradX);
}

} // namespace vitrine::engine
