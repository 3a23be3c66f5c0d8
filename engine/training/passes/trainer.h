// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Steps of a training run: gradients over one or several micro-batches, then one step of the optimizer.
//
// In the trace a step is one step scope "train" with the layer scopes of engine/training/passes/gradient_pass.h and one
// named "optimizer". Each step reports counters: loss, learning_rate, gradient_norm, tokens_per_second.

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "engine/training/parameters/trained_state.h"
#include "engine/training/passes/cross_entropy_objective.h"
#include "engine/training/passes/gradient_pass.h"

namespace vitrine::engine {

/// What a step was like. Numbers that come from values are 0 on Meta.
struct TrainingStep {
    double loss = 0;         ///< of the objective, before the update
    double auxLoss = 0;      ///< the load-balancing loss before its coefficient; 0 where it is not asked for
    double gradientNorm = 0; ///< before clipping
    double seconds = 0;      ///< on the context's clock
    std::int64_t tokens = 0; ///< of all micro-batches
    /// Layers whose inputs found no room in host memory, in the micro-batch with the most of them.
    std::size_t keptOnDevice = 0;
    double expertDisagreement = 0; ///< see ExpertDisagreement::share

    double tokensPerSecond() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

/// Runs the objective over the batches without gradients, as one step of it.
void evaluateObjective(GradientPass& pass, kernels::Context& context, std::span<const TrainingBatch> batches,
                       Objective& objective);
/// The mean loss over the tokens of batches that count.
double meanLoss(GradientPass& pass, kernels::Context& context, std::span<const TrainingBatch> batches);

/// Belongs to the thread of the model's context. The model and the state outlive it.
class Trainer {
public:
    /// `seed` is that of dropout.
    Trainer(Model& model, TrainedState& state, const MemoryTechniques& techniques,
            const Regularisation& regularisation = {}, std::uint64_t seed = 0);

    /// Step `number` (from 1) with this learning rate. `beforeUpdate` (may be null) is called when the gradients are
    /// complete. Throws BadInput for a bad batch or one without tokens that count, OutOfMemory, Cancelled; the trained
    /// tensors are then as before the step.
    TrainingStep step(std::span<const TrainingBatch> batches, Objective& objective, double learningRate,
                      std::int64_t number, const std::function<void()>& beforeUpdate = {});
    /// `prepare` is called before the first pass and, within a step, after the update of the trained tensors: what the
    /// model computes with is made from them there.
    void setPreparation(std::function<void()> prepare) { prepare_ = std::move(prepare); }
    /// Calls it where the tensors have changed since, before something else computes with the model.
    void prepare();
    /// See meanLoss.
    double loss(std::span<const TrainingBatch> batches);
    /// An objective over batches without gradients; see evaluateObjective.
    void evaluate(std::span<const TrainingBatch> batches, Objective& objective);
    /// Gives the memory that steps leave for the next step back to the device and the host, before something else
    /// needs it. The next step takes it again.
    void giveBack();
    const MemoryTechniques& techniques() const { return pass_.techniques(); }
    /// The loss of the next token, for step().
    Objective& nextToken() { return nextToken_; }

private:
    Model& model_;
    TrainedState& state_;
    GradientPass pass_;
    std::uint64_t seed_;
    std::function<void()> prepare_; ///< may be empty
    bool changed_ = true;           ///< since prepare_ was called
    CrossEntropyObjective nextToken_;
    kernels::Tensor norm_; ///< (1) F32
};

} // namespace vitrine::engine
