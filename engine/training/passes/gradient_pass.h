// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Forward and backward pass of a model over one batch: the gradients of an objective for the trained tensors.
//
// Activations come from the context's caching allocator (Memory::general). In the trace, the phases of a step are layer
// scopes: "forward layer", "loss chunk", "recompute", "backward layer".

#include <cstdint>
#include <memory>

#include "engine/model/model.h"
#include "engine/training/data/training_batch.h"
#include "engine/training/parameters/gradient_map.h"
#include "engine/training/passes/activation_store.h"
#include "engine/training/passes/balance_loss.h"
#include "engine/training/passes/document_mask.h"
#include "engine/training/passes/expert_replay.h"
#include "engine/training/passes/memory_techniques.h"
#include "engine/training/passes/objective.h"
#include "engine/training/passes/regularisation.h"

namespace vitrine::engine {

/// What a micro-batch is to its step.
struct StepPart {
    std::int64_t index = 0; ///< its place
    double share = 1;       ///< of the step's tokens, for the load-balancing loss
    std::uint64_t seed = 0; ///< of dropout
};

/// Where a batch gives experts (TrainingBatch::experts), all layers take them: forward, without gradients, and when
/// they are computed again.
///
/// Belongs to the thread of the model's context. The model outlives it.
class GradientPass {
public:
    GradientPass(Model& model, const MemoryTechniques& techniques, const Regularisation& regularisation = {});

    /// Adds what the batch adds to the loss of `objective`, and its gradients to `gradients`. Returns the
    /// load-balancing loss before its coefficient. Throws BadInput for a bad batch, OutOfMemory, Cancelled; the
    /// gradients are then of no use.
    double run(const TrainingBatch& batch, const GradientMap& gradients, const StepPart& part, Objective& objective);
    /// The loss only. `index`: the batch's place in the step of the objective.
    void evaluate(const TrainingBatch& batch, std::int64_t index, Objective& objective);
    /// Gives back what stays between passes: host memory for layer inputs. The next pass takes it again.
    void giveBack() { store_.giveBack(); }
    const MemoryTechniques& techniques() const { return techniques_; }
    /// Over the passes with given experts, with and without gradients, since its begin().
    ExpertDisagreement& disagreement() { return disagreement_; }
    /// How many layers' inputs found no room in host memory in the last pass.
    std::size_t keptOnDevice() const { return store_.refused(); }

private:
    double pass(const TrainingBatch& batch, const GradientMap* gradients, const StepPart& part, Objective& objective);

    Model& model_;
    MemoryTechniques techniques_;
    DocumentMasks masks_;
    ActivationStore store_;
    std::unique_ptr<BalanceLoss> balance_; ///< null: no such loss
    ExpertDisagreement disagreement_;
    double dropout_;
};

} // namespace vitrine::engine
