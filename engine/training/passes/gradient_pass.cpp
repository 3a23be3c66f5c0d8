// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/gradient_pass.h"

#include <fmt/format.h>
#include <utility>

#include "engine/model/embed_tokens.h"
#include "engine/training/passes/batch_inputs.h"
#include "engine/training/passes/head_loss.h"
#include "engine/training/passes/layer_stack.h"
#include "kernels/ops/linear/matmul_gradients.h"
#include "kernels/ops/rowwise/embedding.h"

namespace vitrine::engine {

using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

namespace {

/// `gradient` (tokens, hidden) is that of the first layer's input.
void embeddingBackward(const OpRunner& runner, const BatchInputs& inputs, const Decoder& decoder,
                       const GradientMap& gradients, const TensorView& gradient) {
    const TensorView table = gradients.of(decoder.embedding());
    if (!table.empty()) {
        runner.run(kernels::EmbeddingGradient{inputs.order(), inputs.ids(), gradient, table, decoder.embeddingScale()});
    }
    const kernels::AdapterView& adapter = decoder.embeddingAdapter();
    if (const TensorView b = gradients.of(adapter.b); !b.empty()) {
        const Tensor low = embeddingLow(runner, decoder, inputs.ids());
        runner.run(kernels::MatmulWeightGradient{low.view(), gradient, b, true});
    }
    if (const TensorView a = gradients.of(adapter.a); !a.empty()) {
        const Tensor low = runner.make(base::MemoryCategory::Gradients, "adapter.gradient", runner.compute(),
                                       Shape{gradient.shape[0], adapter.a.shape[1]});
        const float scale = adapter.scale * decoder.embeddingScale();
        runner.run(
            kernels::MatmulInputGradient{gradient, kernels::denseWeight(adapter.b), low.view(), false, {}, scale});
        runner.run(kernels::EmbeddingGradient{inputs.order(), inputs.ids(), low.view(), a});
    }
}

} // namespace

GradientPass::GradientPass(Model& model, const MemoryTechniques& techniques, const Regularisation& regularisation)
    : model_(model), techniques_(techniques), store_(model.context()), disagreement_(model),
      dropout_(regularisation.dropout) {
    if (model.config().latent.used()) {
        throw base::Unsupported(fmt::format("model: training is not supported for {}, whose attention reads latents; "
                                            "choose a model of another family",
                                            familyName(model.config().family)));
    }
    if (regularisation.auxLoss > 0 && model.config().experts > 0) {
        balance_ = std::make_unique<BalanceLoss>(model.context(), model.config().experts, regularisation.auxLoss);
    }
}

double GradientPass::run(const TrainingBatch& batch, const GradientMap& gradients, const StepPart& part,
                         Objective& objective) {
    return pass(batch, &gradients, part, objective);
}

void GradientPass::evaluate(const TrainingBatch& batch, std::int64_t index, Objective& objective) {
    StepPart part;
    part.index = index;
    pass(batch, nullptr, part, objective);
}

double GradientPass::pass(const TrainingBatch& batch, const GradientMap* gradients, const StepPart& part,
                          Objective& objective) {
    kernels::Context& context = model_.context();
    const OpRunner runner(context, context.memory().general(), model_.options().computeDType);
    const Decoder& decoder = model_.decoder();
    store_.begin();
    masks_.begin(batch.lengths, batch.prefixes);
    const BatchInputs inputs(runner, model_, batch);
    if (!batch.experts.empty()) {
        disagreement_.beginPass(inputs.experts());
    }
    Tensor x = runner.activation("hidden", Shape{inputs.ids().shape[0], model_.config().hidden});
    embedTokens(runner, decoder, inputs.ids(), x.view());
    BalanceLoss* balance = gradients != nullptr ? balance_.get() : nullptr;
    if (balance != nullptr) {
        balance->begin();
    }
    const LayerDropout dropout{gradients != nullptr ? dropout_ : 0, part.seed};
    LayerStack layers(runner, model_, inputs, techniques_, masks_, store_, {balance, dropout, &disagreement_});
    x = layers.forward(std::move(x), gradients != nullptr);
    objective.beginBatch(runner, part.index);
    runHeadLoss(runner, {model_.config(), decoder, gradients, x.view(), inputs.targets(), objective,
                         techniques_.lossChunk, dropout});
    if (gradients == nullptr) {
        return 0;
    }
    const double balanceLoss = balance != nullptr ? balance->finish(part.share) : 0;
    layers.backward(*gradients, x.view());
    embeddingBackward(runner, inputs, decoder, *gradients, x.view());
    return balanceLoss;
}

} // namespace vitrine::engine
