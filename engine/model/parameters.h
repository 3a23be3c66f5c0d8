// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The parameters of a model: every weight with what an optimizer, a quantizer or a shard plan must know about it.

#include <cstdint>
#include <string>

#include "engine/parallel/shard.h"
#include "kernels/core/weight_view.h"

namespace vitrine::engine {

/// A view of one weight. The model owns the memory.
struct Parameter {
    /// The name in the checkpoint, "model.layers.3.self_attn.q_proj.weight". A packed weight consists of several
    /// tensors; its name is what their names have in common at the beginning. Experts that the checkpoint stores one by
    /// one are one stack here, "...mlp.experts.gate_up_proj".
    std::string name;
    kernels::WeightView view;
    std::int32_t layer = -1; ///< -1: not in a layer
    ParameterRole role = ParameterRole::Norm;
    bool bias = false;
    /// How it is divided when several ranks share the model. `view` is what this rank has of it.
    ParameterShard shard;
    bool trainable = false; ///< its elements are floats, so an optimizer can change them in place
};

} // namespace vitrine::engine
