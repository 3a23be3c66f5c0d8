// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The load-balancing loss of a mixture of experts (Fedus and others 2021, equation 4), over all layers together as
// transformers computes it:
//   loss = E * sum over experts of f * P
// f is the share of the (layer, token) pairs whose router chose the expert, P the expert's mean probability over them.
// A shared prompt's tokens count once, as they pass the router once.
// Where a batch gives experts (TrainingBatch::experts), f counts these, as they are what the experts are loaded with,
// and P is of the trainer's own logits.
// The choice has no gradient, so that of a probability is E * f / pairs.

#include <cstdint>

#include "engine/model/layer_forward.h"

namespace vitrine::engine {

/// Of one micro-batch after the other. Belongs to the context's thread.
class BalanceLoss {
public:
    /// `coefficient` multiplies the gradients, not the loss that finish() returns.
    BalanceLoss(kernels::Context& context, std::int64_t experts, double coefficient);

    void begin();
    /// Adds what a layer's router chose. `runner` and this outlive it.
    RouterObserver observer(const OpRunner& runner);
    /// After the forward pass. Waits for the device. `share` is the micro-batch's part of the step: it multiplies the
    /// gradients.
    double finish(double share);
    /// (experts) F32, after finish(): see kernels::RouterTopKBackward.
    const kernels::TensorView& gradProbabilities() const { return gradient_.view(); }

private:
    void add(const OpRunner& runner, const kernels::RouterTopK& done);

    kernels::Context& context_;
    std::int64_t experts_;
    double coefficient_;
    std::int64_t pairs_ = 0;   ///< of layers and tokens since begin()
    kernels::Tensor sums_;     ///< (2 experts) F32: of probabilities, of choices
    kernels::Tensor gradient_; ///< (experts) F32
};

} // namespace vitrine::engine
