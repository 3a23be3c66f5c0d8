// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/gguf_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "base/quoted_text.h"
#include "engine/checkpoint/unused_keys.h"

namespace vitrine::engine {
namespace {

using base::quotedText;

/// What is said about the file and not about its numbers.
constexpr std::array<std::string_view, 6> kAboutTheFile = {"general.",      "split.",   "quantize.",
                                                           "mradermacher.", "imatrix.", "tokenizer."};

/// Read by gguf_config.cpp, or without any bearing: what a file was made for, and sizes that its tensors tell.
constexpr auto kReadKeys = std::to_array<GgufKey>({
    usedKey("vocab_size"),
    usedKey("context_length"),
    usedKey("embedding_length"),
    usedKey("block_count"),
    usedKey("feed_forward_length"),
    usedKey("tensor_data_layout"),
    usedKey("pooling_type"), // of embeddings of texts
    usedKey("attention.head_count"),
    usedKey("attention.head_count_kv"),
    usedKey("attention.key_length"),
    usedKey("attention.value_length"),
    usedKey("attention.layer_norm_rms_epsilon"),
    usedKey("attention.layer_norm_epsilon"), // of norms that these models do not have
    usedKey("rope.dimension_count"),
    usedKey("rope.freq_base"),
    usedKey("rope.scale_linear"),
    usedKey("rope.scaling.type"),
    usedKey("rope.scaling.factor"),
    usedKey("rope.scaling.original_context_length"),
    usedKey("rope.scaling.attn_factor"),
    usedKey("rope.scaling.finetuned"),
    usedKey("rope.scaling.yarn_attn_factor"),
    usedKey("rope.scaling.yarn_beta_fast"),
    usedKey("rope.scaling.yarn_beta_slow"),
});

/// Each changes the numbers where its value is another one.
constexpr auto kNeutralKeys = std::to_array<GgufKey>({
    neutralKey("use_parallel_residual", 0),
    neutralKey("logit_scale", 1, 0),
    neutralKey("residual_scale", 1, 0),
    neutralKey("embedding_scale", 1, 0),
    neutralKey("attn_logit_softcapping", 0),
    neutralKey("router_logit_softcapping", 0),
    neutralKey("final_logit_softcapping", 0),
    neutralKey("attention.max_alibi_bias", 0),
    neutralKey("attention.clamp_kqv", 0),
    neutralKey("attention.causal", 1),
    neutralKey("attention.output_scale", 1, 0),
    neutralKey("attention.temperature_length", 0),
    neutralKey("attention.temperature_scale", 0),
    neutralKey("attention.q_lora_rank", 0),
    neutralKey("attention.kv_lora_rank", 0),
    neutralKey("attention.key_length_mla", 0),
    neutralKey("attention.value_length_mla", 0),
    neutralKey("attention.shared_kv_layers", 0),
    neutralKey("attention.recurrent_layers", 0),
    neutralKey("rope.dimension_sections", 0),
    neutralKey("rope.scaling.alpha", 0, 1),
    neutralKey("rope.scaling.yarn_ext_factor", 1, -1),
    neutralKey("rope.scaling.yarn_log_multiplier", 0),
    neutralKey("expert_weights_scale", 1, 0),
    neutralKey("expert_shared_count", 0),
    neutralKey("expert_shared_feed_forward_length", 0),
    neutralKey("expert_chunk_feed_forward_length", 0),
    neutralKey("expert_group_count", 0, 1),
    neutralKey("expert_group_used_count", 0, 1),
    neutralKey("expert_group_scale", 0, 1),
    neutralKey("experts_per_group", 0),
    neutralKey("leading_dense_block_count", 0),
    neutralKey("interleave_moe_layer_step", 0, 1),
    neutralKey("moe_every_n_layers", 0, 1),
    neutralKey("full_attention_interval", 0, 1),
    neutralKey("nextn_predict_layers", 0),
    neutralKey("n_deepstack_layers", 0),
    neutralKey("swiglu_clamp_exp", 0),
    neutralKey("swiglu_clamp_shexp", 0),
});

/// Element `index` of a value as a number; nothing for texts.
std::optional<double> numberAt(const GgufValue& value, std::size_t index) {
    const auto read = [&]<class T>(T) { return static_cast<double>(ggufNumber<T>(value.data + index * sizeof(T))); };
    switch (value.type) {
    case GgufValueType::U8:
    case GgufValueType::Bool:
        return read(std::uint8_t{});
    case GgufValueType::I8:
        return read(std::int8_t{});
    case GgufValueType::U16:
        return read(std::uint16_t{});
    case GgufValueType::I16:
        return read(std::int16_t{});
    case GgufValueType::U32:
        return read(std::uint32_t{});
    case GgufValueType::I32:
        return read(std::int32_t{});
    case GgufValueType::U64:
        return read(std::uint64_t{});
    case GgufValueType::I64:
        return read(std::int64_t{});
    case GgufValueType::F32:
        return read(float{});
    case GgufValueType::F64:
        return read(double{});
    default:
        return std::nullopt;
    }
}

void checkNeutral(const GgufHeader& header, const GgufValue& value, const GgufKey& known) {
    const bool emptyText = !value.array && value.type == GgufValueType::Text && header.text(value.key)->empty();
    if (emptyText) {
        return;
    }
    for (std::uint32_t i = 0; i < value.count; ++i) {
        const auto number = numberAt(value, i);
        if (number && (*number == known.neutral || *number == known.alsoNeutral)) {
            continue;
        }
        const std::string is = number ? fmt::format("{}", *number) : std::string("a text");
        header.unsupported(value.key, fmt::format("is {}, which is not supported; only {} is, or a file without it", is,
                                                  known.neutral));
    }
}

} // namespace

void checkGgufKeys(const GgufHeader& header, std::string_view prefix, std::span<const GgufKey> known, bool others) {
    std::vector<std::string> unknown;
    for (const GgufValue& value : header.values()) {
        if (!value.key.starts_with(prefix)) {
            const bool about =
                std::ranges::any_of(kAboutTheFile, [&](std::string_view each) { return value.key.starts_with(each); });
            if (others && !about) {
                unknown.push_back(quotedText(value.key));
            }
            continue;
        }
        const auto found = std::ranges::find(known, value.key.substr(prefix.size()), &GgufKey::name);
        if (found == known.end()) {
            unknown.push_back(quotedText(value.key));
        } else if (!found->used) {
            checkNeutral(header, value, *found);
        }
    }
    warnOfUnusedKeys(header.file(), std::move(unknown));
}

std::vector<GgufKey> ggufModelKeys(const GgufKeySizes& sizes) {
    std::vector<GgufKey> out(kReadKeys.begin(), kReadKeys.end());
    out.insert(out.end(), kNeutralKeys.begin(), kNeutralKeys.end());
    const auto headDim = static_cast<double>(sizes.headDim);
    out.push_back(neutralKey("attention.scale", 0, static_cast<double>(static_cast<float>(1 / std::sqrt(headDim)))));
    out.push_back(neutralKey("rope.freq_base_swa", static_cast<double>(static_cast<float>(sizes.ropeBase))));
    out.push_back(neutralKey("rope.dimension_count_swa", headDim));
    out.push_back(neutralKey("attention.key_length_swa", headDim));
    out.push_back(neutralKey("attention.value_length_swa", headDim));
    out.push_back(neutralKey("embedding_length_out", static_cast<double>(sizes.hidden)));
    const bool gptOss = sizes.family == "gpt_oss";
    const bool experts = gptOss || sizes.family == "qwen3_moe";
    if (gptOss || sizes.family == "llama") {
        out.push_back(usedKey("attention.sliding_window"));
    } else {
        out.push_back(neutralKey("attention.sliding_window", 0));
    }
    if (gptOss) {
        out.push_back(usedKey("attention.sliding_window_pattern"));
    } else {
        out.push_back(neutralKey("attention.sliding_window_pattern", 0, 1));
    }
    // 1 is the softmax of all experts, 3 that of the chosen ones.
    out.push_back(neutralKey("expert_gating_func", gptOss ? 3 : 1, 0));
    for (const std::string_view name : {"expert_count", "expert_used_count"}) {
        out.push_back(experts ? usedKey(name) : neutralKey(name, 0));
    }
    // Without experts these say nothing; the weights of gpt-oss have the sum 1 anyway.
    out.push_back(usedKey("expert_feed_forward_length"));
    out.push_back(usedKey("expert_weights_norm"));
    return out;
}

} // namespace vitrine::engine
