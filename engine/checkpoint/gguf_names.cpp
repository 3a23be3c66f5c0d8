// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/gguf_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 3> kOutside = {{{"model.embed_tokens.weight", "token_embd.weight"},
                                           {"model.norm.weight", "output_norm.weight"},
                                           {"lm_head.weight", "output.weight"}}};

/// Of a layer: beginnings of names after "model.layers.N.", and after "blk.N.".
constexpr std::array<Pair, 12> kInLayer = {{{"input_layernorm.", "attn_norm."},
                                            {"self_attn.q_proj.", "attn_q."},
                                            {"self_attn.k_proj.", "attn_k."},
                                            {"self_attn.v_proj.", "attn_v."},
                                            {"self_attn.o_proj.", "attn_output."},
                                            {"self_attn.q_norm.", "attn_q_norm."},
                                            {"self_attn.k_norm.", "attn_k_norm."},
                                            {"mlp.gate_proj.", "ffn_gate."},
                                            {"mlp.up_proj.", "ffn_up."},
                                            {"mlp.down_proj.", "ffn_down."},
                                            {"mlp.gate.", "ffn_gate_inp."},
                                            {"mlp.router.", "ffn_gate_inp."}}};

/// Removes a number from the beginning of `text`.
std::optional<std::int64_t> takeNumber(std::string_view& text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool takePrefix(std::string_view& text, std::string_view prefix) {
    const bool found = text.starts_with(prefix);
    text.remove_prefix(found ? prefix.size() : 0);
    return found;
}

/// `rest` follows "mlp.experts.": a linear of one expert, or a stack and its biases.
std::optional<GgufPlace> placeOfExperts(std::string_view rest, const std::string& block) {
    if (auto expert = takeNumber(rest)) {
        for (const std::string_view which : {"gate", "up", "down"}) {
            if (rest == fmt::format(".{}_proj.weight", which)) {
                return GgufPlace{fmt::format("{}ffn_{}_exps.weight", block, which), {}, *expert};
            }
        }
        return std::nullopt;
    }
    const std::string_view ending = rest.ends_with("_bias") ? "bias" : "weight";
    if (rest.starts_with("gate_up_proj")) {
        return GgufPlace{fmt::format("{}ffn_gate_exps.{}", block, ending),
                         fmt::format("{}ffn_up_exps.{}", block, ending)};
    }
    return GgufPlace{fmt::format("{}ffn_down_exps.{}", block, ending)};
}

std::optional<GgufPlace> placeInLayer(std::string_view rest, const std::string& block, const ModelConfig& config) {
    if (takePrefix(rest, "mlp.experts.")) {
        return placeOfExperts(rest, block);
    }
    if (rest == "self_attn.sinks") {
        return GgufPlace{block + "attn_sinks.weight"};
    }
    if (takePrefix(rest, "post_attention_layernorm.")) {
        const bool gptOss = config.family == Family::GptOss;
        return GgufPlace{fmt::format("{}{}.{}", block, gptOss ? "post_attention_norm" : "ffn_norm", rest)};
    }
    const auto* const found =
        std::ranges::find_if(kInLayer, [&](const Pair& pair) { return rest.starts_with(pair.first); });
    if (found == kInLayer.end()) {
        return std::nullopt;
    }
    GgufPlace out{fmt::format("{}{}{}", block, found->second, rest.substr(found->first.size()))};
    const bool turned = rest.starts_with("self_attn.q_proj.") || rest.starts_with("self_attn.k_proj.");
    out.neighbours = turned && (config.family == Family::Llama || config.family == Family::Mistral);
    return out;
}

} // namespace

GgufPlace ggufPlaceOf(std::string_view name, const ModelConfig& config) {
    const auto* const outside = std::ranges::find(kOutside, name, &Pair::first);
    if (outside != kOutside.end()) {
        return {std::string(outside->second)};
    }
    std::string_view rest = name;
    std::optional<GgufPlace> out;
    if (takePrefix(rest, "model.layers.")) {
        const auto layer = takeNumber(rest);
        if (layer && takePrefix(rest, ".")) {
            out = placeInLayer(rest, fmt::format("blk.{}.", *layer), config);
        }
    }
    if (!out) {
        throw base::Internal(fmt::format("{} has no place in a GGUF file", name));
    }
    return *out;
}

} // namespace vitrine::engine
