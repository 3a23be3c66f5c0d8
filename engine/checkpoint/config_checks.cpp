// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/config_checks.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

/// Whether layer `index` slides by the family's own rule, for configs without layer_types.
bool slidesByRule(const ModelConfig& config, std::size_t index, std::int64_t maxWindowLayers) {
    switch (config.family) {
    case Family::GptOss:
    case Family::Gemma2:
        return index % 2 == 0;
    case Family::Qwen2:
    case Family::Qwen3:
        return static_cast<std::int64_t>(index) >= maxWindowLayers;
    case Family::Mistral:
    case Family::Qwen3Moe:
        return true;
    case Family::Llama:
    case Family::DeepseekV3:
        return false;
    }
    throw base::Internal("unknown model family");
}

/// layer_types, or nothing when missing.
std::optional<std::vector<bool>> parseLayerTypes(ConfigReader& reader, std::size_t layers) {
    const json* types = reader.find("layer_types");
    if (types == nullptr) {
        return std::nullopt;
    }
    if (!types->is_array()) {
        reader.bad("layer_types", "must be a list of texts");
    }
    if (types->size() != layers) {
        reader.bad("layer_types", fmt::format("has {} entries, but num_hidden_layers is {}", types->size(), layers));
    }
    std::vector<bool> sliding;
    for (const json& type : *types) {
        if (!type.is_string()) {
            reader.bad("layer_types", "must be a list of texts");
        }
        const auto& name = type.get_ref<const std::string&>();
        if (name != "full_attention" && name != "sliding_attention" && name != "attention") {
            reader.unsupported(
                "layer_types",
                fmt::format("{} is not supported; full_attention and sliding_attention are", quotedText(name)));
        }
        sliding.push_back(name == "sliding_attention");
    }
    return sliding;
}

} // namespace

void parseLayerWindows(ConfigReader& reader, std::int64_t defaultWindow, ModelConfig& config) {
    std::int64_t window = 0; // 0: none
    const bool neverSlides = config.family == Family::Llama || config.family == Family::DeepseekV3;
    if (!neverSlides) {
        const std::int64_t missing = reader.present("sliding_window") ? 0 : defaultWindow;
        window = reader.optionalInteger("sliding_window", 1, kMaxPositions).value_or(missing);
    }
    const bool qwen =
        config.family == Family::Qwen2 || config.family == Family::Qwen3 || config.family == Family::Qwen3Moe;
    if (qwen && !reader.boolean("use_sliding_window", false)) {
        window = 0;
    }
    const std::int64_t maxWindowLayers = qwen ? reader.integer("max_window_layers", 28, 0, kMaxPositions) : 0;
    const std::optional<std::vector<bool>> named = parseLayerTypes(reader, config.layers.size());
    const bool alternates = config.family == Family::GptOss || config.family == Family::Gemma2;
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
        const bool byRule = slidesByRule(config, i, maxWindowLayers) && (window != 0 || alternates);
        const bool slides = named ? (*named)[i] : byRule;
        if (slides && window == 0) {
            reader.bad("sliding_window", "is missing or switched off, but layer_types has sliding_attention");
        }
        // These classes of transformers do not look at layer_types: another value than theirs would be computed
        // otherwise there than here.
        const bool fixed = neverSlides || config.family == Family::Mistral || config.family == Family::Qwen3Moe;
        if (fixed && slides != byRule) {
            reader.unsupported("layer_types",
                               fmt::format("layer {} differs from what {} models do", i, familyName(config.family)));
        }
        config.layers[i].window = slides ? window : 0;
    }
}

void checkWholeSize(ConfigReader& reader, const ModelConfig& config) {
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    const double attention = real(config.attentionWeights());
    const double dense = 3 * real(config.hidden) * real(config.intermediate);
    const double experts = 3 * real(config.hidden) *
                           (real(config.moeIntermediate) * real(config.experts) + real(config.sharedIntermediate));
    const double parameters = 2 * real(config.vocab) * real(config.hidden) +
                              real(static_cast<std::int64_t>(config.layers.size())) * (attention + dense + experts);
    constexpr double kMostParameters = 1e15;
    if (parameters > kMostParameters) {
        reader.bad("hidden_size",
                   fmt::format("the sizes describe {:.1e} parameters, more than {:.0e}", parameters, kMostParameters));
    }
}

} // namespace vitrine::engine
