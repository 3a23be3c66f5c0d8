// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Forward and backward pass of a model over one batch: the loss, and the gradients of the trained tensors.
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
#include "engine/training/passes/memory_techniques.h"
#include "engine/training/passes/regularisation.h"

namespace vitrine::engine {

/// What a micro-batch is to its step.
struct StepPart {
    float gradScale = 1;    ///< of the gradients of the losses: 1 / (tokens that count) for those of the mean
    double share = 1;       ///< of the step's tokens, for the load-balancing loss
    std::uint64_t seed = 0; ///< of dropout
};

/// Belongs to the thread of the model's context. The model outlives it.
class GradientPass {
public:
    GradientPass(Model& model, const MemoryTechniques& techniques, const Regularisation& regularisation = {});

    /// Adds the losses of the batch to `lossSum` (1) F64 and part.gradScale times their gradients to `gradients`.
    /// Returns the load-balancing loss before its coefficient. Throws BadInput for a bad batch, OutOfMemory, Cancelled;
    /// the gradients are then of no use.
    double run(const TrainingBatch& batch, const GradientMap& gradients, const StepPart& part,
               const kernels::TensorView& lossSum);
    /// The losses only.
    void evaluate(const TrainingBatch& batch, const kernels::TensorView& lossSum);
    /// Gives back what stays between passes: host memory for layer inputs. The next pass takes it again.
    void giveBack() { store_.giveBack(); }
    const MemoryTechniques& techniques() const { return techniques_; }
    /// How many layers' inputs found no room in host memory in the last pass.
    std::size_t keptOnDevice() const { return store_.refused(); }

private:
    double pass(const TrainingBatch& batch, const GradientMap* gradients, const StepPart& part,
                const kernels::TensorView& lossSum);

    Model& model_;
    MemoryTechniques techniques_;
    DocumentMasks masks_;
    ActivationStore store_;
    std::unique_ptr<BalanceLoss> balance_; ///< null: no such loss
    double dropout_;
};

} // namespace vitrine::engine
