// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <string_view>

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

/// The role of a weight or bias by its name in a checkpoint, "model.layers.3.self_attn.q_proj.weight": also of a
/// single expert's, and of the tensors of a stack of packed experts ("...experts.down_proj_blocks"). Names that no
/// other role has are those of norms.
ParameterRole roleOf(std::string_view name);

/// Whether it is the name of a bias.
bool isBias(std::string_view name);

} // namespace vitrine::engine
