// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/parallel/shard.h"

namespace vitrine::engine {

namespace {

ParameterShard divided(ShardAxis axis) {
    return {ShardState::Divided, {axis}};
}

/// A product by its inputs: its bias is added once.
ParameterShard byInputs(const ShardAxis& axis, bool bias) {
    return bias ? ParameterShard{ShardState::Partial, {}} : divided(axis);
}

/// Features of an expert lie as gate and up rows do.
ShardAxis gateUpAxis(const ModelConfig& config, int axis) {
    ShardAxis out{axis, ShardUnit::ExpertFeatures};
    if (config.gateLayout == kernels::GateLayout::Interleaved) {
        out.unitSize = 2;
    } else {
        out.blocks = 2;
    }
    return out;
}

/// Stacks (experts, out, in), their biases (experts, out), or one expert's matrix (out, in).
ParameterShard ofExperts(const ModelConfig& config, bool down, bool bias, int rank, bool transposed) {
    const bool single = !bias && rank == 2;
    ParameterShard out{ShardState::Divided, {}};
    if (!single) {
        out.axes.push_back({0, ShardUnit::Experts});
    }
    if (bias && down) {
        out.state = ShardState::Partial;
        return out;
    }
    if (bias) {
        out.axes.push_back(gateUpAxis(config, 1));
        return out;
    }
    const int outputs = single ? 0 : (transposed ? 2 : 1), inputs = single ? 1 : (transposed ? 1 : 2);
    if (down) {
        out.axes.push_back({inputs, ShardUnit::ExpertFeatures});
    } else if (single) {
        out.axes.push_back({outputs, ShardUnit::ExpertFeatures}); // gate, or up
    } else {
        out.axes.push_back(gateUpAxis(config, outputs));
    }
    return out;
}

} // namespace

ParameterShard shardOf(const ModelConfig& config, ParameterRole role, bool bias, int rank, bool transposed) {
    const bool latent = config.latent.used();
    switch (role) {
    case ParameterRole::Embedding:
    case ParameterRole::Head:
        return divided({0, ShardUnit::VocabularyRows});
    case ParameterRole::Query:
        return divided({0, ShardUnit::Heads, latent ? config.latent.queryDim() : config.headDim});
    case ParameterRole::LatentUp:
        return divided({0, ShardUnit::Heads, config.latent.upDim()});
    case ParameterRole::Key:
    case ParameterRole::Value:
        return divided({0, ShardUnit::KeyHeads, config.headDim});
    case ParameterRole::AttentionOut:
        return byInputs({1, ShardUnit::Heads, latent ? config.latent.valueDim : config.headDim}, bias);
    case ParameterRole::Sinks:
        return divided({0, ShardUnit::Heads});
    case ParameterRole::Gate:
    case ParameterRole::Up:
    case ParameterRole::SharedGate:
    case ParameterRole::SharedUp:
        return divided({0, ShardUnit::Features});
    case ParameterRole::Down:
    case ParameterRole::SharedDown:
        return byInputs({1, ShardUnit::Features}, bias);
    case ParameterRole::ExpertGateUp:
        return ofExperts(config, false, bias, rank, transposed);
    case ParameterRole::ExpertDown:
        return ofExperts(config, true, bias, rank, transposed);
    default:
        return {};
    }
}

} // namespace vitrine::engine
