// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// All layers of a model, forward and backward, over one batch. What the forward pass leaves for the backward pass
// follows from the memory techniques.

#include <vector>

#include "engine/model/decoder.h"
#include "engine/training/passes/activation_store.h"
#include "engine/training/passes/balance_loss.h"
#include "engine/training/passes/batch_inputs.h"
#include "engine/training/passes/document_mask.h"
#include "engine/training/passes/layer_backward.h"
#include "engine/training/passes/layer_dropout.h"
#include "engine/training/passes/memory_techniques.h"

namespace vitrine::engine {

struct LayerExtras {
    BalanceLoss* balance = nullptr; ///< null: no such loss
    LayerDropout dropout;
    ExpertDisagreement* disagreement = nullptr; ///< null: no batch gives experts
};

/// One pass. The arguments outlive it.
class LayerStack {
public:
    LayerStack(const OpRunner& runner, const Model& model, const BatchInputs& inputs,
               const MemoryTechniques& techniques, DocumentMasks& masks, ActivationStore& store,
               const LayerExtras& extras)
        : runner_(runner), model_(model), inputs_(inputs), techniques_(techniques), masks_(masks), store_(store),
          extras_(extras) {}

    /// Takes the input of the first layer, (tokens, hidden), and gives the output of the last one. `keep`: backward()
    /// follows.
    kernels::Tensor forward(kernels::Tensor x, bool keep);
    /// `gradient` of the output becomes that of the input. Once, after forward().
    void backward(const GradientMap& gradients, const kernels::TensorView& gradient);

private:
    /// What a layer leaves beside its input.
    struct Kept {
        kernels::Tensor middle; ///< between attention and MLP; empty: computed again
        AttentionActivations attention;
        MlpActivations mlp;
    };

    LayerPass pass(const DecoderLayer& layer) const;
    bool repeatsMlp() const;
    /// The layer with dropout for the tokens from `firstRow` on.
    DecoderLayer layerFrom(std::size_t index, std::int64_t firstRow) const;
    /// The experts that the batch gives to these tokens in a layer; without them it is empty.
    RouterReplay replay(std::size_t index, std::int64_t begin, std::int64_t end) const;
    void mlp(std::size_t index, const kernels::TensorView& x, const kernels::TensorView& out,
             MlpActivations* keep) const;
    /// The same of the tokens from `begin` on, whose rows x and out are.
    void mlpPart(std::size_t index, std::int64_t begin, const kernels::TensorView& x, const kernels::TensorView& out,
                 MlpActivations* keep, const RouterObserver* told) const;
    void layerBackward(std::size_t index, const GradientMap& gradients, const kernels::TensorView& gradient);

    const OpRunner& runner_;
    const Model& model_;
    const BatchInputs& inputs_;
    const MemoryTechniques& techniques_;
    DocumentMasks& masks_;
    ActivationStore& store_;
    LayerExtras extras_;
    std::vector<Kept> kept_;
};

} // namespace vitrine::engine
