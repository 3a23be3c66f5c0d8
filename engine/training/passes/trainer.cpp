// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/trainer.h"

#include <algorithm>

#include "engine/training/parameters/host_floats.h"
#include "engine/training/passes/layer_dropout.h"
#include "kernels/context/context.h"
#include "kernels/context/row_parts.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;

namespace {

/// Ends the tracer's step however it is left.
class TrainScope {
public:
    TrainScope(kernels::Tracer& tracer, std::int64_t number, std::int64_t tokens) : tracer_(tracer) {
        tracer_.beginStep("train", static_cast<std::int32_t>(number), tokens);
    }
    ~TrainScope() { tracer_.endStep(); }
    TrainScope(const TrainScope&) = delete; // one begin, one end
    TrainScope& operator=(const TrainScope&) = delete;

private:
    kernels::Tracer& tracer_;
};

/// Whether the documents of all batches are as long as those of the first, and have the same prefixes and given experts
/// or none.
bool areAlike(std::span<const TrainingBatch> batches) {
    return std::ranges::all_of(batches, [&](const TrainingBatch& batch) {
        return batch.lengths == batches.front().lengths && batch.prefixes == batches.front().prefixes &&
               batch.experts.empty() == batches.front().experts.empty();
    });
}

} // namespace

Trainer::Trainer(Model& model, TrainedState& state, const MemoryTechniques& techniques,
                 const Regularisation& regularisation, std::uint64_t seed)
    : model_(model), state_(state), pass_(model, techniques, regularisation), seed_(seed), nextToken_(model.context()),
      norm_(model.context().memory().general(), MemoryCategory::Other, "gradients.norm", DType::F32, Shape{1}) {}

void Trainer::prepare() {
    if (prepare_ && changed_) {
        prepare_();
    }
    changed_ = false;
}

TrainingStep Trainer::step(std::span<const TrainingBatch> batches, Objective& objective, double learningRate,
                           std::int64_t number, const std::function<void()>& beforeUpdate) {
    kernels::Context& context = model_.context();
    const TokenCounts counts = countTokens(batches);
    TrainingStep out;
    out.tokens = counts.tokens;
    const base::TimeNs begin = context.clock().now();
    {
        const TrainScope scope(context.tracer(), number, counts.tokens);
        context.beginVirtualStep(kernels::LaunchKind::Trained);
        prepare();
        state_.zeroGradients();
        objective.beginStep(batches);
        pass_.disagreement().begin();
        StepPart part;
        const auto run = [&](std::int64_t index) {
            const TrainingBatch& batch = batches[static_cast<std::size_t>(index)];
            part.share = static_cast<double>(batch.count()) / static_cast<double>(counts.tokens);
            part.index = index;
            part.seed = dropoutSeed(seed_, number, index);
            out.auxLoss += part.share * pass_.run(batch, state_.gradients(), part, objective);
            out.keptOnDevice = std::max(out.keptOnDevice, pass_.keptOnDevice());
        };
        kernels::forRowParts(context, static_cast<std::int64_t>(batches.size()), areAlike(batches) ? 1 : 0,
                             [&](std::int64_t first, std::int64_t last) {
                                 for (std::int64_t index = first; index < last; ++index) {
                                     run(index);
                                 }
                             });
        if (beforeUpdate) {
            beforeUpdate();
        }
        const kernels::StopPause whole(context); // who is to stop stops before the next step
        {
            const kernels::TraceScope optimizer(context.tracer(), base::ScopeKind::Layer, "optimizer");
            changed_ = true;
            state_.update(learningRate, number, norm_.view());
        }
        prepare();
        out.loss = objective.loss();
        out.expertDisagreement = pass_.disagreement().share();
        out.gradientNorm = static_cast<double>(downloadFloats(context, norm_.view()).front());
    }
    out.seconds = static_cast<double>(context.clock().now() - begin) * 1e-9;
    context.tracer().counter("loss", out.loss);
    context.tracer().counter("learning_rate", learningRate);
    context.tracer().counter("gradient_norm", out.gradientNorm);
    context.tracer().counter("tokens_per_second", static_cast<double>(out.tokens) / std::max(out.seconds, 1e-9));
    return out;
}

double Trainer::loss(std::span<const TrainingBatch> batches) {
    prepare();
    return meanLoss(pass_, model_.context(), batches);
}

void Trainer::giveBack() {
    pass_.giveBack();
    model_.context().memory().trim();
    model_.context().memory().trimHost();
}

void Trainer::evaluate(std::span<const TrainingBatch> batches, Objective& objective) {
    prepare();
    evaluateObjective(pass_, model_.context(), batches, objective);
}

void evaluateObjective(GradientPass& pass, kernels::Context& context, std::span<const TrainingBatch> batches,
                       Objective& objective) {
    const kernels::TraceScope scope(context.tracer(), base::ScopeKind::Phase, "evaluate", -1,
                                    countTokens(batches).tokens);
    objective.beginStep(batches);
    std::int64_t index = 0;
    for (const TrainingBatch& batch : batches) {
        pass.evaluate(batch, index++, objective);
    }
}

double meanLoss(GradientPass& pass, kernels::Context& context, std::span<const TrainingBatch> batches) {
    CrossEntropyObjective objective(context);
    evaluateObjective(pass, context, batches, objective);
    return objective.loss();
}

} // namespace vitrine::engine
