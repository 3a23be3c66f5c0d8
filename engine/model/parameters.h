// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The parameters of a model: every weight with what an optimizer, a quantizer or a shard plan must know about it.

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/weight_view.h"

namespace vitrine::engine {

/// The place of a parameter in the model. A bias has the role of the product that it is added to.
enum class ParameterRole : std::uint8_t {
    Embedding,
    Head,
    Norm,
    Query,
    Key,
    Value,
    QueryDown, ///< of latent attention: to the rank of queries
    KeyDown,   ///< the same: to latents
    LatentUp,  ///< the same: from latents to keys and values
    AttentionOut,
    Sinks,
    Router,
    RouterCorrection,
    Gate,
    Up,
    Down,
    ExpertGateUp,
    ExpertDown,
    SharedGate,
    SharedUp,
    SharedDown,
};

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
    /// The dimension of view.shape that is divided when several devices share the model: the outputs of q, k, v, gate
    /// and up, the inputs of o and down, the experts of a stack, the vocabulary of the embedding and the head. None:
    /// every device holds the whole parameter.
    std::optional<int> shardAxis;
    bool trainable = false; ///< its elements are floats, so an optimizer can change them in place
};

} // namespace vitrine::engine
