// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The backward pass of a decoder layer, written by hand: what attentionForward and mlpForward (engine/model) kept goes
// in, and gradients of the input and of the trained tensors come out. Kept tensors are let go as soon as they have been
// read.

#include "engine/model/flat_attention.h"
#include "engine/model/layer_forward.h"
#include "engine/training/parameters/gradient_map.h"

namespace vitrine::engine {

/// gradX (tokens, hidden) becomes the gradient of x, from that of the output. gradX may be gradOut.
void attentionBackward(const OpRunner& runner, const LayerPass& pass, const FlatAttention& attention,
                       const GradientMap& gradients, const kernels::TensorView& x, AttentionActivations& kept,
                       const kernels::TensorView& gradOut, const kernels::TensorView& gradX);

/// The same of the MLP. `gradProbabilities` (experts) F32: the gradient of each token's probability of an expert by the
/// load-balancing loss, or empty.
void mlpBackward(const OpRunner& runner, const ModelConfig& config, const DecoderLayer& layer,
                 const GradientMap& gradients, const kernels::TensorView& x, MlpActivations& kept,
                 const kernels::TensorView& gradOut, const kernels::TensorView& gradX,
                 const kernels::TensorView& gradProbabilities = {});

} // namespace vitrine::engine
