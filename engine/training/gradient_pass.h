// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Forward and backward pass of a model over one batch: the loss, and the gradients of the trained tensors.
//
// Activations come from the context's caching allocator (Memory::general). In the trace, the phases of a step are layer
// scopes: "forward layer", "loss chunk", "recompute", "backward layer".

#include "engine/model/model.h"
#include "engine/training/activation_store.h"
#include "engine/training/document_mask.h"
#include "engine/training/gradient_map.h"
#include "engine/training/memory_techniques.h"
#include "engine/training/training_batch.h"

namespace vitrine::engine {

/// Belongs to the thread of the model's context. The model outlives it.
class GradientPass {
public:
    GradientPass(Model& model, const MemoryTechniques& techniques);

    /// Adds the losses of the batch to `lossSum` (1) F64 and gradScale times their gradients to `gradients`. Throws
    /// BadInput for a bad batch, OutOfMemory, Cancelled; the gradients are then of no use.
    void run(const TrainingBatch& batch, const GradientMap& gradients, float gradScale,
             const kernels::TensorView& lossSum);
    /// The losses only.
    void evaluate(const TrainingBatch& batch, const kernels::TensorView& lossSum);
    /// Gives back what stays between passes: host memory for layer inputs. The next pass takes it again.
    void giveBack() { store_.giveBack(); }
    const MemoryTechniques& techniques() const { return techniques_; }
    /// How many layers' inputs found no room in host memory in the last pass.
    std::size_t keptOnDevice() const { return store_.refused(); }

private:
    void pass(const TrainingBatch& batch, const GradientMap* gradients, float gradScale,
              const kernels::TensorView& lossSum);

    Model& model_;
    MemoryTechniques techniques_;
    DocumentMasks masks_;
    ActivationStore store_;
};

} // namespace vitrine::engine
