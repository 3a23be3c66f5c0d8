// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The last part of the forward pass and the first part of the backward pass, for a chunk of tokens at a time: final
// norm, logits, loss, and the gradients of them. The logits of all tokens need never exist.

#include "engine/model/decoder.h"
#include "engine/model/op_runner.h"
#include "engine/training/parameters/gradient_map.h"
#include "engine/training/passes/layer_dropout.h"

namespace vitrine::engine {

/// One use of the head.
struct HeadLoss {
    const ModelConfig& config;
    const Decoder& decoder;
    const GradientMap* gradients = nullptr; ///< null: the loss only, x stays as it is
    kernels::TensorView x;                  ///< (tokens, hidden), what the last layer gave; becomes its gradient
    kernels::TensorView targets;            ///< (tokens) I32, -1: the token does not count
    kernels::TensorView lossSum;            ///< (1) F32 or F64: the losses are added to it
    float gradScale = 1;                    ///< of the gradients: 1 / (tokens that count) for those of the mean
    std::int64_t chunk = 0;                 ///< tokens; 0: all
    LayerDropout dropout;                   ///< of the head's adapter
};

void runHeadLoss(const OpRunner& runner, const HeadLoss& loss);

} // namespace vitrine::engine
