// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A training batch on the device, as the layers, the loss and the gradients take it.

#include "engine/model/step.h"
#include "engine/training/data/training_batch.h"

namespace vitrine::engine {

class BatchInputs {
public:
    /// Uploads the batch. Throws BadInput for a token or a target outside the vocabulary, Internal for lengths that do
    /// not add up. The runner and the model outlive it.
    BatchInputs(const OpRunner& runner, const Model& model, const TrainingBatch& batch);

    const LayerTokens& tokens() const { return tokens_; }
    const kernels::TensorView& ids() const { return ids_; }         ///< (tokens) I32
    const kernels::TensorView& targets() const { return targets_; } ///< (tokens) I32
    const kernels::TensorView& order() const { return order_; }     ///< (tokens) I32, see kernels::EmbeddingGradient
    const kernels::TensorView& starts() const { return starts_; }   ///< see DocumentMasks

private:
    kernels::Tensor inputs_, frequencies_;
    LayerTokens tokens_;
    kernels::TensorView ids_, targets_, order_, starts_;
};

} // namespace vitrine::engine
