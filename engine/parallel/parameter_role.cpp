// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/parallel/parameter_role.h"

#include <array>
#include <utility>

namespace vitrine::engine {

namespace {

using Rule = std::pair<std::string_view, ParameterRole>;

/// The first one whose text is in the name counts.
constexpr std::array<Rule, 22> kRules = {{
    {"embed_tokens.", ParameterRole::Embedding},
    {"lm_head.", ParameterRole::Head},
    {"shared_experts.gate_proj", ParameterRole::SharedGate},
    {"shared_experts.up_proj", ParameterRole::SharedUp},
    {"shared_experts.down_proj", ParameterRole::SharedDown},
    {".q_proj.", ParameterRole::Query},
    {".q_b_proj.", ParameterRole::Query},
    {".k_proj.", ParameterRole::Key},
    {".v_proj.", ParameterRole::Value},
    {".q_a_proj.", ParameterRole::QueryDown},
    {".kv_a_proj_with_mqa.", ParameterRole::KeyDown},
    {".kv_b_proj.", ParameterRole::LatentUp},
    {".o_proj.", ParameterRole::AttentionOut},
    {".sinks", ParameterRole::Sinks},
    {".e_score_correction_bias", ParameterRole::RouterCorrection},
    {".mlp.router.", ParameterRole::Router},
    {".mlp.gate.", ParameterRole::Router},
    {".mlp.gate_proj.", ParameterRole::Gate},
    {".mlp.up_proj.", ParameterRole::Up},
    {".mlp.down_proj.", ParameterRole::Down},
    {"gate_proj", ParameterRole::ExpertGateUp},
    {"up_proj", ParameterRole::ExpertGateUp},
}};

} // namespace

ParameterRole roleOf(std::string_view name) {
    constexpr std::string_view kExperts = ".experts.";
    const bool expert = name.find(kExperts) != std::string_view::npos;
    if (expert && name.find("down_proj") != std::string_view::npos) {
        return ParameterRole::ExpertDown;
    }
    for (const auto& [text, role] : kRules) {
        const bool ofExpert = role == ParameterRole::ExpertGateUp;
        if (ofExpert == expert && name.find(text) != std::string_view::npos) {
            return role;
        }
    }
    return ParameterRole::Norm;
}

bool isBias(std::string_view name) {
    return name.ends_with(".bias") || name.ends_with("_proj_bias");
}

} // namespace vitrine::engine
