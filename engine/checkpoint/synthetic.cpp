// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/synthetic.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/resource_path.h"
#include "base/strict_json.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/config_reader.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

json overrideValue(const std::string& text) {
    try {
        return base::parseStrictJson(text, "value");
    } catch (const base::BadInput&) {
        return text; // hidden_act=silu
    }
}

void fitLayerTypes(json& config) {
    const auto types = config.find("layer_types");
    const auto layers = config.find("num_hidden_layers");
    if (types == config.end() || !types->is_array() || layers == config.end() || !layers->is_number_unsigned()) {
        return;
    }
    const auto count = layers->get<std::size_t>();
    if (count <= types->size()) {
        types->erase(types->begin() + static_cast<std::ptrdiff_t>(count), types->end());
    } else {
        config.erase(types);
    }
}

} // namespace

std::vector<std::string> syntheticNames() {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(base::resourcePath("synthetic"), error)) {
        if (entry.path().extension() == ".json") {
            names.push_back(entry.path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

json syntheticConfigJson(const std::string& name) {
    const std::vector<std::string> names = syntheticNames();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        throw base::BadInput(
            fmt::format("synthetic:{}: no such shape; known are {}", quotedText(name), fmt::join(names, ", ")));
    }
    return base::readStrictJson(base::resourcePath("synthetic/" + name + ".json"));
}

json overriddenConfig(json config, const std::map<std::string, std::string>& overrides, const std::string& model) {
    if (overrides.empty()) {
        return config;
    }
    const auto known = knownConfigFields(config, model);
    for (const auto& [key, text] : overrides) {
        const std::size_t dot = key.find('.');
        const std::string field = key.substr(0, dot);
        if (!config.contains(field) && known.find(field) == known.end()) {
            throw base::BadInput(fmt::format("{}: {}: is no field of {} configs", model, quotedText(key),
                                             config.value("model_type", std::string("such"))));
        }
        json* target = &config[field];
        if (dot != std::string::npos) {
            const std::string inner = key.substr(dot + 1);
            if (!target->is_object() || !target->contains(inner)) {
                throw base::BadInput(
                    fmt::format("{}: {}: {} has no such field", model, quotedText(key), quotedText(field)));
            }
            target = &(*target)[inner];
        }
        *target = overrideValue(text);
    }
    if (overrides.find("num_hidden_layers") != overrides.end() && overrides.find("layer_types") == overrides.end()) {
        fitLayerTypes(config);
    }
    // Configs of gpt-oss say it twice.
    if (overrides.find("num_experts_per_tok") != overrides.end() && config.contains("experts_per_token")) {
        config["experts_per_token"] = config["num_experts_per_tok"];
    }
    return config;
}

} // namespace vitrine::engine
