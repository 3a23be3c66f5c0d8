// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The last part of the forward pass and the first part of the backward pass, for a chunk of tokens at a time: final
// norm, logits, the objective, and the gradients of them. The logits of all tokens need never exist.

#include "engine/model/decoder.h"
#include "engine/model/op_runner.h"
#include "engine/training/parameters/gradient_map.h"
#include "engine/training/passes/layer_dropout.h"
#include "engine/training/passes/objective.h"

namespace vitrine::engine {

/// One use of the head.
struct HeadLoss {
    const ModelConfig& config;
    const Decoder& decoder;
    const GradientMap* gradients = nullptr; ///< null: the loss only, x stays as it is
    kernels::TensorView x;                  ///< (tokens, hidden), what the last layer gave; becomes its gradient
    kernels::TensorView targets;            ///< (tokens) I32, -1: the token does not count
    Objective& objective;                   ///< whose loss it is
    std::int64_t chunk = 0;                 ///< tokens; 0: all
    LayerDropout dropout;                   ///< of the head's adapter
};

void runHeadLoss(const OpRunner& runner, const HeadLoss& loss);

} // namespace vitrine::engine
