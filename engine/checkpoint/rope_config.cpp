// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/rope_config.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numbers>

#include "engine/checkpoint/config_checks.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

constexpr double kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;
constexpr const char* kOriginal = "original_max_position_embeddings";

RopeType parseRopeType(ConfigReader& reader) {
    // "type" is the older name.
    const char* key = reader.find("rope_type") != nullptr ? "rope_type" : "type";
    const std::string type = reader.text(key, "default");
    if (reader.text("type", type) != type) {
        reader.forget("type"); // transformers passes over it
    }
    if (type == "default") {
        return RopeType::Default;
    }
    if (type == "linear") {
        return RopeType::Linear;
    }
    if (type == "dynamic") {
        return RopeType::Dynamic;
    }
    if (type == "llama3") {
        return RopeType::Llama3;
    }
    if (type == "yarn") {
        return RopeType::Yarn;
    }
    if (type == "longrope" || type == "su") { // the second is the older name
        return RopeType::LongRope;
    }
    reader.unsupported(key, fmt::format("{} is not supported; default, linear, dynamic, llama3, yarn and longrope are",
                                        quotedText(type)));
}

double required(ConfigReader& reader, const char* key, double low, double high) {
    const std::optional<double> value = reader.optionalNumber(key, low, high);
    if (!value) {
        reader.bad(key, "is missing, and this rope_type needs it");
    }
    return *value;
}

/// transformers takes its default for a 0 as it does for a missing value.
double numberOrDefault(ConfigReader& reader, const char* key, double defaultValue, double high) {
    const double value = reader.number(key, 0, 0, high);
    return value == 0 ? defaultValue : value;
}

void refusePartialRotation(ConfigReader& reader) {
    if (reader.number("partial_rotary_factor", 1, 0, 1) != 1) {
        reader.unsupported("partial_rotary_factor", "only 1 (rotate the whole head) is supported");
    }
}

std::int64_t originalPositions(ConfigReader& reader, const ModelConfig& config, std::optional<std::int64_t> outer) {
    const std::int64_t inner = reader.optionalInteger(kOriginal, 1, kMaxPositions).value_or(config.maxPositions);
    return outer.value_or(inner);
}

std::vector<double> parseFactors(ConfigReader& reader, const char* key, std::int64_t count) {
    const json* value = reader.find(key);
    if (value == nullptr || !value->is_array() || std::ssize(*value) != count) {
        reader.bad(key, fmt::format("must be a list of {} numbers, one for each pair of a head's elements", count));
    }
    std::vector<double> out;
    for (const json& factor : *value) {
        const double number = factor.is_number() ? factor.get<double>() : 0;
        if (!(number >= 1e-6 && number <= kMaxFactor)) {
            reader.bad(key, fmt::format("must be numbers from 1e-06 to {}", kMaxFactor));
        }
        out.push_back(number);
    }
    return out;
}

void parseLongRope(ConfigReader& reader, const ModelConfig& config, std::optional<std::int64_t> outer,
                   RopeConfig& rope) {
    rope.originalMaxPositions = originalPositions(reader, config, outer);
    const double ratio = static_cast<double>(config.maxPositions) / static_cast<double>(rope.originalMaxPositions);
    rope.factor = reader.optionalNumber("factor", 1e-6, kMaxFactor).value_or(ratio);
    rope.shortFactors = parseFactors(reader, "short_factor", config.ropeDim() / 2);
    rope.longFactors = parseFactors(reader, "long_factor", config.ropeDim() / 2);
    rope.attentionFactor = reader.number("attention_factor", 0, 1e-6, 1e6);
    if (rope.originalMaxPositions == 1 && rope.factor > 1 && rope.attentionFactor == 0) {
        reader.bad(kOriginal, "must be larger than 1, or attention_factor must be given");
    }
}

void parseYarn(ConfigReader& reader, const ModelConfig& config, std::optional<std::int64_t> outer, RopeConfig& rope) {
    rope.originalMaxPositions = originalPositions(reader, config, outer);
    const double ratio = static_cast<double>(config.maxPositions) / static_cast<double>(rope.originalMaxPositions);
    rope.factor = reader.optionalNumber("factor", 1e-6, kMaxFactor).value_or(ratio);
    rope.betaFast = numberOrDefault(reader, "beta_fast", 32, 1e9);
    rope.betaSlow = numberOrDefault(reader, "beta_slow", 1, 1e9);
    rope.truncate = reader.boolean("truncate", true);
    rope.mscale = reader.number("mscale", 0, 0, 1e6);
    rope.mscaleAllDim = reader.number("mscale_all_dim", 0, 0, 1e6);
    rope.attentionFactor = reader.number("attention_factor", 0, 1e-6, 1e6);
    if (rope.theta <= 1) {
        reader.bad("rope_theta", "must be larger than 1 for yarn");
    }
}

void parseLlama3(ConfigReader& reader, const ModelConfig& config, std::optional<std::int64_t> outer, RopeConfig& rope) {
    rope.originalMaxPositions = originalPositions(reader, config, outer);
    rope.factor = required(reader, "factor", 1e-6, kMaxFactor);
    rope.lowFreqFactor = required(reader, "low_freq_factor", 1e-6, kMaxFactor);
    rope.highFreqFactor = required(reader, "high_freq_factor", 1e-6, kMaxFactor);
    if (rope.highFreqFactor <= rope.lowFreqFactor) {
        reader.bad("high_freq_factor", "must be larger than low_freq_factor");
    }
}

/// `outerOriginal` is the original length where the config has it beside the dictionary.
RopeConfig parseParameters(ConfigReader& reader, const ModelConfig& config, double theta,
                           std::optional<std::int64_t> outerOriginal = std::nullopt) {
    RopeConfig rope;
    rope.type = parseRopeType(reader);
    rope.theta = reader.number("rope_theta", theta, 1e-3, kMaxTheta);
    refusePartialRotation(reader);
    if (reader.find("mrope_section") != nullptr) {
        reader.unsupported("mrope_section", "rotary embeddings with several axes are not supported");
    }
    switch (rope.type) {
    case RopeType::Default:
        break;
    case RopeType::Linear:
        rope.factor = required(reader, "factor", 1e-6, kMaxFactor);
        break;
    case RopeType::Dynamic:
        rope.factor = required(reader, "factor", 1e-6, kMaxFactor);
        rope.originalMaxPositions = config.maxPositions;
        if (config.ropeDim() <= 2) {
            reader.bad("rope_type", "dynamic needs heads of more than 2 elements");
        }
        break;
    case RopeType::Llama3:
        parseLlama3(reader, config, outerOriginal, rope);
        break;
    case RopeType::Yarn:
        parseYarn(reader, config, outerOriginal, rope);
        break;
    case RopeType::LongRope:
        parseLongRope(reader, config, outerOriginal, rope);
        break;
    }
    return rope;
}

/// v5 may hold one dictionary for each layer type; all must say the same.
RopeConfig parseNested(ConfigReader& reader, const char* key, ConfigReader& layers, const ModelConfig& config,
                       double theta) {
    std::optional<RopeConfig> common;
    for (const char* layerType : {"full_attention", "sliding_attention"}) {
        if (!layers.present(layerType)) {
            continue;
        }
        const json* found = layers.find(layerType);
        if (found == nullptr) {
            reader.unsupported(key,
                               fmt::format("layers of type {} without rotary embedding are not supported", layerType));
        }
        ConfigReader nested = layers.inside(*found, layerType);
        const RopeConfig rope = parseParameters(nested, config, theta);
        if (common && *common != rope) {
            reader.unsupported(key, "different values for sliding and full layers are not supported");
        }
        common = rope;
    }
    return *common;
}

/// Inverse frequencies of the YaRN paper (Peng et al. 2023): low frequencies are divided by the factor, high ones kept,
/// those between blended.
void applyYarn(const RopeConfig& rope, double dim, std::vector<double>& inverse) {
    const auto correctionDim = [&](double rotations) {
        const double positions = static_cast<double>(rope.originalMaxPositions);
        return dim * std::log(positions / (rotations * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
    };
    double low = correctionDim(rope.betaFast);
    double high = correctionDim(rope.betaSlow);
    if (rope.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dim - 1);
    if (low == high) {
        high += 0.001; // no division by zero
    }
    for (std::size_t i = 0; i < inverse.size(); ++i) {
        const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
        inverse[i] = inverse[i] / rope.factor * ramp + inverse[i] * (1 - ramp);
    }
}

void applyLlama3(const RopeConfig& rope, std::vector<double>& inverse) {
    const double positions = static_cast<double>(rope.originalMaxPositions);
    for (double& value : inverse) {
        const double wavelength = 2 * std::numbers::pi / value;
        if (wavelength > positions / rope.lowFreqFactor) {
            value /= rope.factor;
        } else if (wavelength >= positions / rope.highFreqFactor) {
            const double smooth =
                (positions / wavelength - rope.lowFreqFactor) / (rope.highFreqFactor - rope.lowFreqFactor);
            value = (1 - smooth) * value / rope.factor + smooth * value;
        }
    }
}

/// What multiplies cos and sin, for short sequences as for long ones.
double longRopeScale(const RopeConfig& rope) {
    if (rope.attentionFactor != 0) {
        return rope.attentionFactor;
    }
    const double positions = static_cast<double>(rope.originalMaxPositions);
    return rope.factor <= 1 ? 1 : std::sqrt(1 + std::log(rope.factor) / std::log(positions));
}

/// Some files have the original length beside the dictionary instead of in it. As in transformers it then wins, for
/// the types that know it.
RopeConfig parseFlat(ConfigReader& reader, const char* key, const json& parameters, const ModelConfig& config,
                     double theta) {
    ConfigReader nested = reader.inside(parameters, key);
    const RopeType type = parseRopeType(nested);
    const bool knows = type == RopeType::Llama3 || type == RopeType::Yarn || type == RopeType::LongRope;
    const auto outer = parameters.is_object() && knows ? reader.optionalInteger(kOriginal, 1, kMaxPositions)
                                                       : std::optional<std::int64_t>();
    return parseParameters(nested, config, theta, outer);
}

} // namespace

double yarnScale(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

RopeConfig parseRope(ConfigReader& reader, const ModelConfig& config, const RopeConfig& defaults) {
    refusePartialRotation(reader);
    const double theta = reader.number("rope_theta", defaults.theta, 1e-3, kMaxTheta);
    // As in transformers: a rope_scaling that says anything wins, then rope_parameters, then the class default.
    const json* v5 = reader.find("rope_parameters");
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        const json* parameters = key == std::string_view("rope_scaling") ? reader.find(key) : v5;
        if (parameters == nullptr || (parameters->is_object() && parameters->empty())) {
            continue;
        }
        if (parameters->contains("full_attention") || parameters->contains("sliding_attention")) {
            ConfigReader layers = reader.inside(*parameters, key);
            return parseNested(reader, key, layers, config, theta);
        }
        return parseFlat(reader, key, *parameters, config, theta);
    }
    RopeConfig rope = defaults;
    rope.theta = theta;
    return rope;
}

RopeTable makeRopeTable(const ModelConfig& config, std::int64_t sequenceLength) {
    const RopeConfig& rope = config.rope;
    const auto dim = static_cast<double>(config.ropeDim());
    double theta = rope.theta;
    if (rope.type == RopeType::Dynamic) {
        const auto positions = static_cast<double>(config.maxPositions);
        const double length = std::max(static_cast<double>(sequenceLength), positions);
        theta *= std::pow(rope.factor * length / positions - (rope.factor - 1), dim / (dim - 2));
    }
    std::vector<double> inverse(static_cast<std::size_t>(config.ropeDim() / 2));
    for (std::size_t i = 0; i < inverse.size(); ++i) {
        inverse[i] = std::pow(theta, -2 * static_cast<double>(i) / dim);
    }
    RopeTable table;
    if (rope.type == RopeType::Linear) {
        for (double& value : inverse) {
            value /= rope.factor;
        }
    } else if (rope.type == RopeType::Llama3) {
        applyLlama3(rope, inverse);
    } else if (rope.type == RopeType::Yarn) {
        applyYarn(rope, dim, inverse);
        if (rope.attentionFactor != 0) {
            table.attentionScale = rope.attentionFactor;
        } else if (rope.mscale != 0 && rope.mscaleAllDim != 0) {
            table.attentionScale = yarnScale(rope.factor, rope.mscale) / yarnScale(rope.factor, rope.mscaleAllDim);
        } else {
            table.attentionScale = yarnScale(rope.factor, 1);
        }
    }
    if (rope.type == RopeType::LongRope) {
        const bool isLong = sequenceLength > rope.originalMaxPositions;
        const std::vector<double>& factors = isLong ? rope.longFactors : rope.shortFactors;
        for (std::size_t i = 0; i < inverse.size(); ++i) {
            inverse[i] /= factors[i];
        }
        table.attentionScale = longRopeScale(rope);
    }
    table.inverseFrequency.assign(inverse.begin(), inverse.end());
    return table;
}

} // namespace vitrine::engine
