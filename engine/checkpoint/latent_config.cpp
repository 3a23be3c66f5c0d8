// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/latent_config.h"

#include <cmath>
#include <fmt/format.h>

#include "engine/checkpoint/config_checks.h"
#include "engine/checkpoint/expert_config.h"
#include "engine/checkpoint/rope_config.h"
#include "kernels/ops/attention/attention.h"

namespace vitrine::engine {

namespace {

void parseLatentAttention(ConfigReader& reader, ModelConfig& config) {
    LatentConfig& latent = config.latent;
    const std::int64_t missing = reader.present("q_lora_rank") ? 0 : 1536;
    latent.queryRank = reader.optionalInteger("q_lora_rank", 1, kMaxDim).value_or(missing);
    latent.keyRank = reader.integer("kv_lora_rank", 512, 1, kMaxDim);
    latent.nopeDim = reader.integer("qk_nope_head_dim", 128, 1, kMaxDim);
    latent.ropeDim = reader.integer("qk_rope_head_dim", 64, 2, kMaxDim);
    latent.valueDim = reader.integer("v_head_dim", 128, 1, kMaxDim);
    latent.interleaved = reader.boolean("rope_interleave", true);
    if (config.kvHeads != config.heads) {
        reader.unsupported("num_key_value_heads",
                           fmt::format("{} is not supported; latent attention has one key for each of the {} heads",
                                       config.kvHeads, config.heads));
    }
    if (latent.ropeDim % 2 != 0) {
        reader.bad("qk_rope_head_dim", fmt::format("{} is odd, but rotary embeddings turn pairs", latent.ropeDim));
    }
    config.kvHeads = 1;
    config.headDim = latent.keyRank + latent.ropeDim;
    if (config.headDim > kernels::kMaxHeadDim) {
        reader.bad("kv_lora_rank",
                   fmt::format("with qk_rope_head_dim it makes {} elements, and at most {} are supported",
                               config.headDim, kernels::kMaxHeadDim));
    }
    for (const auto& [key, width] :
         {std::pair{"qk_nope_head_dim", latent.queryDim()}, std::pair{"v_head_dim", latent.upDim()},
          std::pair{"kv_lora_rank", config.headDim}}) {
        if (config.heads * width > kMaxDim) {
            reader.bad(key, fmt::format("{} heads of {} elements are more than {}", config.heads, width, kMaxDim));
        }
    }
}

void parseRouter(ConfigReader& reader, ModelConfig& config) {
    for (const auto& [key, known] : {std::pair{"scoring_func", "sigmoid"}, std::pair{"topk_method", "noaux_tc"}}) {
        if (const std::string name = reader.text(key, known); name != known) {
            reader.unsupported(key, fmt::format("{} is not supported; {} is", quotedText(name), known));
        }
    }
    config.routerOrder = kernels::RouterOrder::SigmoidThenTopK;
    config.routerNormalize = reader.boolean("norm_topk_prob", true);
    config.routerScale = reader.number("routed_scaling_factor", 2.5, 0, 1e6);
    parseExperts(reader, {"n_routed_experts", "num_local_experts"}, 256, 8, config);
    config.routerGroups = reader.integer("n_group", 8, 1, kMaxDim);
    config.routerKeptGroups = reader.integer("topk_group", 4, 1, kMaxDim);
    if (config.experts == 0) {
        return;
    }
    if (config.experts % config.routerGroups != 0) {
        reader.bad("n_group", fmt::format("{} does not divide the {} experts", config.routerGroups, config.experts));
    }
    const std::int64_t size = config.experts / config.routerGroups;
    if (config.routerKeptGroups > config.routerGroups) {
        reader.bad("topk_group", fmt::format("{} of {} groups", config.routerKeptGroups, config.routerGroups));
    }
    if (size < 2 && config.routerKeptGroups < config.routerGroups) {
        reader.bad("n_group", "groups of one expert cannot be ranked by their two best");
    }
    if (config.expertsPerToken > config.routerKeptGroups * size) {
        reader.bad("num_experts_per_tok", fmt::format("{} of the {} experts that topk_group leaves",
                                                      config.expertsPerToken, config.routerKeptGroups * size));
    }
}

} // namespace

void parseDeepseekV3(ConfigReader& reader, ModelConfig& config) {
    config.qkvBias = config.outBias = reader.boolean("attention_bias", false);
    parseLatentAttention(reader, config);
    config.moeIntermediate = reader.integer("moe_intermediate_size", 2048, 1, kMaxDim);
    parseRouter(reader, config);
    const std::int64_t shared =
        reader.optionalInteger("n_shared_experts", 0, 1024).value_or(reader.present("n_shared_experts") ? 0 : 1);
    config.sharedIntermediate = shared * config.moeIntermediate;
    if (config.sharedIntermediate > kMaxDim) {
        reader.bad("n_shared_experts",
                   fmt::format("{} of {} elements are more than {}", shared, config.moeIntermediate, kMaxDim));
    }
    if (reader.integer("moe_layer_freq", 1, 1, kMaxDim) != 1) {
        reader.unsupported("moe_layer_freq", "only 1 is supported: every layer after the dense ones has experts");
    }
    const std::int64_t dense = reader.integer("first_k_dense_replace", 3, 0, kMaxDim);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
        config.layers[i].moe = config.experts > 0 && static_cast<std::int64_t>(i) >= dense;
    }
}

void scaleLatentScores(ModelConfig& config) {
    config.attentionScale = 1 / std::sqrt(static_cast<double>(config.latent.queryDim()));
    if (config.rope.mscaleAllDim != 0) {
        const double scale = yarnScale(config.rope.factor, config.rope.mscaleAllDim);
        config.attentionScale *= scale * scale;
    }
}

} // namespace vitrine::engine
