// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One layer of a decoder as a value: its part of the config, its weights and its attention programs. Code that works
// layer by layer (steps, training, quantization, sharding) uses these values. The weights and the programs are views.
// The model that the layer belongs to owns the memory.

#include "engine/checkpoint/model_config.h"
#include "kernels/ops/linear/linear_view.h"
#include "kernels/program/attention_program.h"

namespace vitrine::engine {

/// What latent attention has beside the layer's `q` and `o` (kernels/ops/fused/latent_blocks.h). Empty in layers with
/// another attention; these have `k` and `v`.
struct LatentWeights {
    kernels::LinearView queryDown; ///< or empty
    kernels::NormWeights queryNorm;
    kernels::LinearView keyDown;
    kernels::NormWeights keyNorm;
    kernels::TensorView up; ///< of all heads

    bool empty() const { return up.empty(); }
};

/// A member that the model family does not have is empty. WeightView::empty() says so for a weight, the empty tensor
/// for a norm or the sinks, BoundProgram::empty() for a program. kernels/ops/fused/blocks.h gives the shapes.
struct DecoderLayer {
    LayerConfig config;
    kernels::NormWeights attentionNorm;
    kernels::LinearView q, k, v, o;
    LatentWeights latent;
    kernels::NormWeights qNorm, kNorm; ///< over headDim
    kernels::TensorView sinks;         ///< (heads)
    kernels::BoundProgram attentionScore, attentionMask;
    kernels::NormWeights attentionPostNorm; ///< Gemma2
    kernels::NormWeights mlpNorm, mlpPostNorm;
    kernels::LinearView gate, up;                         ///< of a dense MLP
    kernels::LinearView router;                           ///< of a mixture of experts
    std::int64_t firstExpert = 0;                         ///< of the model's: that of the stacks
    kernels::LinearView gateUp;                           ///< of experts, a stack: rows of gate and up
    kernels::LinearView down;                             ///< of a dense MLP, or a stack of experts'
    kernels::TensorView routerCorrection;                 ///< see kernels::RouterGroups
    kernels::LinearView sharedGate, sharedUp, sharedDown; ///< of the experts that every token passes
};

} // namespace vitrine::engine
