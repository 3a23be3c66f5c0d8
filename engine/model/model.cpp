// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/model.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/layer.h"
#include "engine/model/step.h"
#include "kernels/core/floats.h"
#include "kernels/program/program_builder.h"

namespace vitrine::engine {
namespace {

/// Gemma2 multiplies embeddings by sqrt(hidden) rounded to the compute type.
float embeddingScale(const ModelConfig& config, kernels::DType compute) {
    if (!config.scaleEmbedding) {
        return 1;
    }
    const auto scale = static_cast<float>(std::sqrt(static_cast<double>(config.hidden)));
    return compute == kernels::DType::BF16 ? kernels::bf16ToFloat(kernels::floatToBf16(scale)) : scale;
}

} // namespace

Model::Model(kernels::Context& context, const ModelSource& source, const ModelOptions& options,
             base::ProgressSink* progress)
    : context_(context), config_(source.config), options_(options) {
    const LoadOptions load{options.dequantize, options.seed};
    const bool kept = WeightStore::wouldKeep(context, source, load);
    const kernels::TraceScope phase(context.tracer(), base::ScopeKind::Phase,
                                    kept ? "weights kept from the run before" : "load");
    weights_ = std::make_unique<WeightStore>(context, source, load, progress);
    context.joinStreams(); // nothing computes before the weights are there
    embeddingScale_ = embeddingScale(config_, options_.computeDType);
    bindLayers();
    bindPrograms();
    if (config_.rope.type != RopeType::Dynamic) {
        const RopeTable table = makeRopeTable(config_, config_.maxPositions);
        const kernels::Shape shape{static_cast<std::int64_t>(table.inverseFrequency.size())};
        // Of exactly this size, so that with more memory more is left.
        ropeArena_ = context.memory().reserveArena(kernels::bytesOf(kernels::DType::F32, shape.count()), "rope");
        ropeFrequencies_ = kernels::Tensor(*ropeArena_, base::MemoryCategory::Other, "rope.inverse_frequency",
                                           kernels::DType::F32, shape);
        context.upload(table.inverseFrequency.data(), ropeFrequencies_.view().data, ropeFrequencies_.view().bytes());
        ropeScale_ = static_cast<float>(table.attentionScale);
    }
}

Model::~Model() {
    dropLaunched();
}

kernels::NormWeights Model::norm(const std::string& name) const {
    return {weights_->get(name + ".weight"), static_cast<float>(config_.normEps), config_.normForm};
}

kernels::LinearView Model::linear(const std::string& name) const {
    kernels::LinearView out;
    out.weight.dense = weights_->get(name + ".weight");
    out.bias = weights_->find(name + ".bias");
    return out;
}

kernels::LinearView Model::experts(const std::string& name) const {
    kernels::LinearView out;
    if (weights_->has(name)) {
        out.weight.dense = weights_->get(name);
        // Dense gpt-oss checkpoints hold (experts, in, out); what was expanded from MXFP4 is (experts, out, in).
        out.weight.transposed = config_.family == Family::GptOss && !config_.mxfp4;
    } else {
        out.weight.mxfp4 = {weights_->get(name + "_blocks"), weights_->get(name + "_scales")};
    }
    out.bias = weights_->find(name + "_bias");
    return out;
}

void Model::bindLayers() {
    for (std::size_t i = 0; i < config_.layers.size(); ++i) {
        const std::string prefix = fmt::format("model.layers.{}.", i);
        const std::string attention = prefix + "self_attn.";
        const std::string mlp = prefix + "mlp.";
        Layer layer;
        layer.config = config_.layers[i];
        layer.attentionNorm = norm(prefix + "input_layernorm");
        layer.q = linear(attention + "q_proj");
        layer.k = linear(attention + "k_proj");
        layer.v = linear(attention + "v_proj");
        layer.o = linear(attention + "o_proj");
        if (config_.qkNorm) {
            layer.qNorm = norm(attention + "q_norm");
            layer.kNorm = norm(attention + "k_norm");
        }
        layer.sinks = weights_->find(attention + "sinks");
        if (config_.postNorms) {
            layer.attentionPostNorm = norm(prefix + "post_attention_layernorm");
            layer.mlpNorm = norm(prefix + "pre_feedforward_layernorm");
            layer.mlpPostNorm = norm(prefix + "post_feedforward_layernorm");
        } else {
            layer.mlpNorm = norm(prefix + "post_attention_layernorm");
        }
        if (layer.config.moe) {
            layer.router = linear(mlp + (config_.family == Family::GptOss ? "router" : "gate"));
            layer.gateUp = experts(mlp + "experts.gate_up_proj");
            layer.down = experts(mlp + "experts.down_proj");
        } else {
            layer.gate = linear(mlp + "gate_proj");
            layer.up = linear(mlp + "up_proj");
            layer.down = linear(mlp + "down_proj");
        }
        layers_.push_back(layer);
    }
    embedding_ = weights_->get("model.embed_tokens.weight");
    finalNorm_ = norm("model.norm");
    head_.weight.dense = config_.tiedEmbeddings ? embedding_ : weights_->get("lm_head.weight");
}

/// Layers with equal windows share a program, and so its kernels.
void Model::bindPrograms() {
    const kernels::KnownProgram* score = nullptr;
    if (config_.attentionSoftCap > 0) {
        score = &programs_.emplace_back(kernels::softCapScore(config_.attentionSoftCap));
    }
    std::map<std::int64_t, const kernels::KnownProgram*> masks;
    for (Layer& layer : layers_) {
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

WeightBytes Model::weightBytes() const {
    WeightBytes out;
    out.head = head_.weight.bytes();
    out.embeddingRow = kernels::bytesOf(embedding_.dtype, config_.hidden);
    out.shared = weights_->report().residentBytes - out.head - (config_.tiedEmbeddings ? 0 : embedding_.bytes());
    for (const Layer& layer : layers_) {
        if (layer.config.moe) {
            std::uint64_t all = 0;
            for (const kernels::LinearView* linear : {&layer.gateUp, &layer.down}) {
                all += linear->weight.bytes() + (linear->bias.empty() ? 0 : linear->bias.bytes());
            }
            out.shared -= all;
            out.expert = all / static_cast<std::uint64_t>(config_.experts);
            ++out.moeLayers;
        }
    }
    return out;
}

std::uint64_t Model::weightBytesPerToken() const {
    const WeightBytes bytes = weightBytes();
    return bytes.shared + bytes.head + (config_.tiedEmbeddings ? 0 : bytes.embeddingRow) +
           bytes.expert * static_cast<std::uint64_t>(bytes.moeLayers * config_.expertsPerToken);
}

std::int64_t prefillChunk(const kernels::DeviceTraits& traits, std::int64_t asked) {
    return asked > 0 ? asked : traits.features.prefillTokens;
}

} // namespace vitrine::engine
