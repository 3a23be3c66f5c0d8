// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The weights of one decoder layer as views.

#include "engine/model/model.h"

namespace vitrine::engine {

struct Model::Layer {
    LayerConfig config;
    kernels::NormWeights attentionNorm;
    kernels::LinearView q, k, v, o;
    kernels::NormWeights qNorm, kNorm;
    kernels::TensorView sinks;
    kernels::BoundProgram attentionScore, attentionMask;
    kernels::NormWeights attentionPostNorm; ///< Gemma2
    kernels::NormWeights mlpNorm, mlpPostNorm;
    kernels::LinearView gate, up, down; ///< dense; `down` is a stack in MoE layers
    kernels::LinearView router, gateUp; ///< MoE
};

} // namespace vitrine::engine
