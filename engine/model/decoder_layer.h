// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One layer of a decoder as a value: its part of the config, its weights, its attention programs. Steps, training,
// quantization and sharding work over these. Weights and programs are views: the model that gave the layer owns them.

#include "engine/checkpoint/model_config.h"
#include "kernels/ops/linear/linear_view.h"
#include "kernels/program/attention_program.h"

namespace vitrine::engine {

/// What a family does not have is empty: weights by WeightView::empty(), norms and sinks by their tensor, programs by
/// BoundProgram::empty(). Shapes are those of kernels/ops/fused/blocks.h.
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
