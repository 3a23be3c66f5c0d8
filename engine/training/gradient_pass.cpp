// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/gradient_pass.h"

#include <utility>

#include "engine/training/batch_inputs.h"
#include "engine/training/head_loss.h"
#include "engine/training/layer_stack.h"
#include "kernels/ops/rowwise/embedding.h"

namespace vitrine::engine {

using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

GradientPass::GradientPass(Model& model, const MemoryTechniques& techniques, double auxLoss)
    : model_(model), techniques_(techniques), store_(model.context()) {
    if (auxLoss > 0 && model.config().experts > 0) {
        balance_ = std::make_unique<BalanceLoss>(model.context(), model.config().experts, auxLoss);
    }
}

double GradientPass::run(const TrainingBatch& batch, const GradientMap& gradients, float gradScale,
                         const TensorView& lossSum, double share) {
    return pass(batch, &gradients, gradScale, lossSum, share);
}

void GradientPass::evaluate(const TrainingBatch& batch, const TensorView& lossSum) {
    pass(batch, nullptr, 1, lossSum, 0);
}

double GradientPass::pass(const TrainingBatch& batch, const GradientMap* gradients, float gradScale,
                          const TensorView& lossSum, double share) {
    kernels::Context& context = model_.context();
    const OpRunner runner(context, context.memory().general(), model_.options().computeDType);
    const Decoder& decoder = model_.decoder();
    store_.begin();
    masks_.begin(batch.lengths);
    const BatchInputs inputs(runner, model_, batch);
    Tensor x = runner.activation("hidden", Shape{inputs.ids().shape[0], model_.config().hidden});
    runner.run(kernels::Embedding{inputs.ids(), decoder.embedding(), x.view(), decoder.embeddingScale()});
    BalanceLoss* balance = gradients != nullptr ? balance_.get() : nullptr;
    if (balance != nullptr) {
        balance->begin();
    }
    LayerStack layers(runner, model_, inputs, techniques_, masks_, store_, balance);
    x = layers.forward(std::move(x), gradients != nullptr);
    runHeadLoss(runner, {model_.config(), decoder, gradients, x.view(), inputs.targets(), lossSum, gradScale,
                         techniques_.lossChunk});
    if (gradients == nullptr) {
        return 0;
    }
    const double balanceLoss = balance != nullptr ? balance->finish(share) : 0;
    layers.backward(*gradients, x.view());
    const TensorView table = gradients->of(decoder.embedding());
    if (!table.empty()) {
        runner.run(kernels::EmbeddingGradient{inputs.order(), inputs.ids(), x.view(), table, decoder.embeddingScale()});
    }
    return balanceLoss;
}

} // namespace vitrine::engine
