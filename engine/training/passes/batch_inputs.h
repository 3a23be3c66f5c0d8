// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A training batch on the device, as the layers, the loss and the gradients take it.

#include "engine/model/step.h"
#include "engine/training/data/training_batch.h"
#include "engine/training/passes/document_mask.h"
#include "engine/training/passes/expert_replay.h"

namespace vitrine::engine {

class BatchInputs {
public:
    /// Uploads the batch. Throws BadInput for a token or a target outside the vocabulary and for experts that are not
    /// the model's (ExpertRows), Internal for lengths that do not add up and for prefixes that are none, Unsupported
    /// for documents of one prompt that rotate its keys differently. The runner and the model outlive it.
    BatchInputs(const OpRunner& runner, const Model& model, const TrainingBatch& batch);

    const LayerTokens& tokens() const { return tokens_; }
    const kernels::TensorView& ids() const { return ids_; }         ///< (tokens) I32
    const kernels::TensorView& targets() const { return targets_; } ///< (tokens) I32
    const kernels::TensorView& order() const { return order_; }     ///< (tokens) I32, see kernels::EmbeddingGradient
    const DocumentPlaces& places() const { return places_; }
    const ExpertRows& experts() const { return experts_; }
    /// Whether a document has a prefix.
    bool sharesPrompts() const { return !places_.prefixStarts.empty(); }

private:
    kernels::Tensor inputs_, frequencies_;
    LayerTokens tokens_;
    kernels::TensorView ids_, targets_, order_;
    DocumentPlaces places_;
    ExpertRows experts_;
};

} // namespace vitrine::engine
