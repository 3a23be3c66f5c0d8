// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/decoder.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/error.h"
#include "kernels/program/program_builder.h"

namespace vitrine::engine {
namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";

/// Finds the weights of one layer, or of what is outside of them, and lists each as a parameter.
class Binder {
public:
    Binder(const ModelConfig& config, const WeightStore& weights, std::vector<Parameter>& parameters)
        : config_(config), weights_(weights), parameters_(parameters) {}

    kernels::TensorView tensor(const std::string& name, ParameterRole role) {
        return weight(name, kernels::denseWeight(weights_.get(name)), role, false).data;
    }

    kernels::NormWeights norm(const std::string& name) { return norm(name, config_.normEps); }
    kernels::NormWeights norm(const std::string& name, double eps) {
        return {tensor(name + ".weight", ParameterRole::Norm), static_cast<float>(eps), config_.normForm};
    }

    kernels::LinearView linear(const std::string& name, ParameterRole role) {
        kernels::LinearView out;
        out.weight = weight(name + ".weight", weights_.weight(name + ".weight"), role, false);
        out.bias = bias(name + ".bias", role);
        return out;
    }

    kernels::LinearView experts(const std::string& name, ParameterRole role) {
        // Dense gpt-oss checkpoints hold (experts, in, out); what was expanded from packed weights is (experts, out,
        // in).
        const bool transposed = config_.family == Family::GptOss && config_.packing(name) == nullptr;
        kernels::LinearView out;
        out.weight = weight(name, transposed ? kernels::denseWeight(weights_.get(name), true) : weights_.weight(name),
                            role, false);
        out.bias = bias(name + "_bias", role);
        return out;
    }

    DecoderLayer layer(std::int32_t index) {
        layer_ = index;
        DecoderLayer out;
        out.config = config_.layers[static_cast<std::size_t>(index)];
        const std::string prefix = fmt::format("model.layers.{}.", index);
        attention(out, prefix);
        mlp(out, prefix);
        layer_ = -1;
        return out;
    }

private:
    const kernels::WeightView& weight(const std::string& name, const kernels::WeightView& view, ParameterRole role,
                                      bool isBias) {
        const bool trainable = !view.quantized() && kernels::isFloat(view.data.dtype);
        ParameterShard shard = shardOf(config_, role, isBias, view.shape.rank());
        return parameters_.emplace_back(Parameter{name, view, layer_, role, isBias, std::move(shard), trainable}).view;
    }

    /// Empty where there is none.
    kernels::TensorView bias(const std::string& name, ParameterRole role) {
        if (!weights_.has(name)) {
            return {};
        }
        return weight(name, kernels::denseWeight(weights_.get(name)), role, true).data;
    }

    void latentAttention(DecoderLayer& out, const std::string& name) {
        const double eps = config_.latent.normEps;
        if (config_.latent.queryRank > 0) {
            out.latent.queryDown = linear(name + "q_a_proj", ParameterRole::QueryDown);
            out.latent.queryNorm = norm(name + "q_a_layernorm", eps);
        }
        out.q = linear(name + (config_.latent.queryRank > 0 ? "q_b_proj" : "q_proj"), ParameterRole::Query);
        out.latent.keyDown = linear(name + "kv_a_proj_with_mqa", ParameterRole::KeyDown);
        out.latent.keyNorm = norm(name + "kv_a_layernorm", eps);
        out.latent.up = tensor(name + "kv_b_proj.weight", ParameterRole::LatentUp);
        out.o = linear(name + "o_proj", ParameterRole::AttentionOut);
    }

    void attention(DecoderLayer& out, const std::string& prefix) {
        const std::string name = prefix + "self_attn.";
        out.attentionNorm = norm(prefix + "input_layernorm");
        if (config_.latent.used()) {
            latentAttention(out, name);
            return;
        }
        out.q = linear(name + "q_proj", ParameterRole::Query);
        out.k = linear(name + "k_proj", ParameterRole::Key);
        out.v = linear(name + "v_proj", ParameterRole::Value);
        out.o = linear(name + "o_proj", ParameterRole::AttentionOut);
        if (config_.qkNorm) {
            out.qNorm = norm(name + "q_norm");
            out.kNorm = norm(name + "k_norm");
        }
        if (config_.sinks) {
            out.sinks = tensor(name + "sinks", ParameterRole::Sinks);
        }
        if (config_.postNorms) {
            out.attentionPostNorm = norm(prefix + "post_attention_layernorm");
        }
    }

    void mlp(DecoderLayer& out, const std::string& prefix) {
        const std::string name = prefix + "mlp.";
        out.mlpNorm = norm(prefix + (config_.postNorms ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
        if (out.config.moe) {
            out.router = linear(name + (config_.family == Family::GptOss ? "router" : "gate"), ParameterRole::Router);
            const std::string correction = name + "gate.e_score_correction_bias";
            if (weights_.has(correction)) {
                out.routerCorrection = tensor(correction, ParameterRole::RouterCorrection);
            }
            out.gateUp = experts(name + "experts.gate_up_proj", ParameterRole::ExpertGateUp);
            out.down = experts(name + "experts.down_proj", ParameterRole::ExpertDown);
            if (config_.sharedIntermediate > 0) {
                const std::string shared = name + "shared_experts.";
                out.sharedGate = linear(shared + "gate_proj", ParameterRole::SharedGate);
                out.sharedUp = linear(shared + "up_proj", ParameterRole::SharedUp);
                out.sharedDown = linear(shared + "down_proj", ParameterRole::SharedDown);
            }
        } else {
            out.gate = linear(name + "gate_proj", ParameterRole::Gate);
            out.up = linear(name + "up_proj", ParameterRole::Up);
            out.down = linear(name + "down_proj", ParameterRole::Down);
        }
        if (config_.postNorms) {
            out.mlpPostNorm = norm(prefix + "post_feedforward_layernorm");
        }
    }

    const ModelConfig& config_;
    const WeightStore& weights_;
    std::vector<Parameter>& parameters_;
    std::int32_t layer_ = -1;
};

} // namespace

Decoder::Decoder(const ModelConfig& config, const WeightStore& weights, const RopeValues& rope, float embeddingScale,
                 std::int64_t firstId, std::int64_t firstExpert)
    : rope_(rope), embeddingScale_(embeddingScale), firstId_(firstId) {
    Binder binder(config, weights, parameters_);
    embedding_ = binder.tensor(kEmbedding, ParameterRole::Embedding);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
        layers_.push_back(binder.layer(static_cast<std::int32_t>(i)));
        layers_.back().firstExpert = firstExpert;
    }
    finalNorm_ = binder.norm("model.norm");
    if (config.tiedEmbeddings) {
        head_.weight = kernels::denseWeight(embedding_);
    } else {
        head_.weight = kernels::denseWeight(binder.tensor("lm_head.weight", ParameterRole::Head));
    }
    bindPrograms(config);
}

const Parameter* Decoder::weightOf(const std::string& weight) const {
    const auto found =
        std::ranges::find_if(parameters_, [&](const Parameter& each) { return each.name == weight && !each.bias; });
    return found == parameters_.end() ? nullptr : &*found;
}

template <class Self> auto Decoder::linearOf(Self& decoder, const std::string& weight) -> decltype(&decoder.head_) {
    const Parameter* found = decoder.weightOf(weight);
    if (found == nullptr || (found->layer < 0 && found->role != ParameterRole::Head)) {
        return nullptr;
    }
    if (found->role == ParameterRole::Head) {
        return &decoder.head_;
    }
    auto& layer = decoder.layers_[static_cast<std::size_t>(found->layer)];
    switch (found->role) {
    case ParameterRole::Query:
        return &layer.q;
    case ParameterRole::Key:
        return &layer.k;
    case ParameterRole::Value:
        return &layer.v;
    case ParameterRole::QueryDown:
        return &layer.latent.queryDown;
    case ParameterRole::KeyDown:
        return &layer.latent.keyDown;
    case ParameterRole::SharedGate:
        return &layer.sharedGate;
    case ParameterRole::SharedUp:
        return &layer.sharedUp;
    case ParameterRole::SharedDown:
        return &layer.sharedDown;
    case ParameterRole::AttentionOut:
        return &layer.o;
    case ParameterRole::Router:
        return &layer.router;
    case ParameterRole::Gate:
        return &layer.gate;
    case ParameterRole::Up:
        return &layer.up;
    case ParameterRole::ExpertGateUp:
        return &layer.gateUp;
    case ParameterRole::Down:
    case ParameterRole::ExpertDown:
        return &layer.down;
    default:
        return nullptr;
    }
}

const kernels::LinearView* Decoder::linear(const std::string& weight) const {
    return linearOf(*this, weight);
}

kernels::LinearView& Decoder::changedLinear(const std::string& weight) {
    kernels::LinearView* found = linearOf(*this, weight);
    if (found == nullptr) {
        throw base::Internal(fmt::format("setAdapter: {} is not the weight of a linear", weight));
    }
    return *found;
}

void Decoder::setAdapter(const std::string& weight, const kernels::AdapterView& adapter) {
    if (weight == kEmbedding) {
        embeddingAdapter_ = adapter;
        return;
    }
    kernels::LinearView& linear = changedLinear(weight);
    if (const auto replaced = replaced_.find(weight); replaced != replaced_.end()) {
        linear.weight = replaced->second;
    } else {
        linear.weight = weightOf(weight)->view;
    }
    linear.adapter = adapter;
    linear.merged = {};
}

void Decoder::replaceWeight(const std::string& weight, const kernels::WeightView& replacement) {
    kernels::LinearView& linear = changedLinear(weight);
    if (replacement.empty()) {
        replaced_.erase(weight);
        linear.weight = weightOf(weight)->view;
        return;
    }
    if (replacement.shape != linear.weight.shape) {
        throw base::Internal(fmt::format("replaceWeight: {} has another shape", weight));
    }
    linear.weight = replaced_[weight] = replacement;
}

void Decoder::setMerged(const std::string& weight, const kernels::WeightView& merged,
                        const kernels::AdapterView& adapter) {
    kernels::LinearView& linear = changedLinear(weight);
    if (merged.shape != linear.weight.shape) {
        throw base::Internal(fmt::format("setMerged: {} has another shape", weight));
    }
    linear.weight = merged;
    linear.adapter = {};
    linear.merged = adapter;
}

/// Layers with equal windows share a program, and so its kernels.
void Decoder::bindPrograms(const ModelConfig& config) {
    const kernels::KnownProgram* score = nullptr;
    if (config.attentionSoftCap > 0) {
        score = &programs_.emplace_back(kernels::softCapScore(config.attentionSoftCap));
    }
    std::map<std::int64_t, const kernels::KnownProgram*> masks;
    for (DecoderLayer& layer : layers_) {
        const kernels::KnownProgram*& mask = masks[layer.config.window];
        if (mask == nullptr) {
            mask = &programs_.emplace_back(kernels::slidingWindowMask(layer.config.window));
        }
        layer.attentionMask = mask->bound();
        if (score != nullptr) {
            layer.attentionScore = score->bound();
        }
    }
}

} // namespace vitrine::engine
