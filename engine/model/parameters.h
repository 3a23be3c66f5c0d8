// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The parameters of a model: every weight with what optimizers, quantizers and shards must know of it.

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/weight_view.h"

namespace vitrine::engine {

/// What a parameter does. A bias has the role of the product that it belongs to.
enum class ParameterRole : std::uint8_t {
    Embedding,
    Head,
    Norm,
    Query,
    Key,
    Value,
    AttentionOut,
    Sinks,
    Router,
    Gate,
    Up,
    Down,
    ExpertGateUp,
    ExpertDown,
};

/// Views a weight of a model, which owns the memory.
struct Parameter {
    /// The name in the checkpoint ("model.layers.3.self_attn.q_proj.weight"). A packed weight has the name that its
    /// tensors begin with. Experts that the checkpoint stores one by one are one stack here,
    /// "...mlp.experts.gate_up_proj".
    std::string name;
    kernels::WeightView view;
    std::int32_t layer = -1; ///< -1: outside of the layers
    ParameterRole role = ParameterRole::Norm;
    bool bias = false;
    /// The dimension of view.shape that several devices would divide among them: outputs of q, k, v, gate and up,
    /// inputs of o and down, experts of a stack, the vocabulary of embedding and head. None: every device holds all of
    /// it.
    std::optional<int> shardAxis;
    bool trainable = false; ///< its elements are floats, which an optimizer can change in place
};

} // namespace vitrine::engine
