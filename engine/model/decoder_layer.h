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

/// A member that the model family does not have is empty. WeightView::empty() says so for a weight, the empty tensor
/// for a norm or the sinks, BoundProgram::empty() for a program. kernels/ops/fused/blocks.h gives the shapes.
struct DecoderLayer {
    LayerConfig config;
    kernels::NormWeights attentionNorm;
    kernels::LinearView q, k, v, o;
    kernels::NormWeights qNorm, kNorm; ///< over headDim
    kernels::TensorView sinks;         ///< (heads)
    kernels::BoundProgram attentionScore, attentionMask;
    kernels::NormWeights attentionPostNorm; ///< Gemma2
    kernels::NormWeights mlpNorm, mlpPostNorm;
    kernels::LinearView gate, up; ///< of a dense MLP
    kernels::LinearView router;   ///< of a mixture of experts
    kernels::LinearView gateUp;   ///< of experts, a stack: rows of gate and up
    kernels::LinearView down;     ///< of a dense MLP, or a stack of experts'
};

} // namespace vitrine::engine
