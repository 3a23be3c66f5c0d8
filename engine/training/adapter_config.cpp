// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapter_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/strict_json.h"
#include "engine/checkpoint/config_reader.h"

namespace vitrine::engine {

using nlohmann::json;

namespace {

constexpr std::int64_t kLargestRank = 65536;
constexpr double kLargestAlpha = 1e9;
constexpr std::size_t kMostAdapterNames = 65536;   ///< of a list
constexpr std::size_t kMostAdapterPatterns = 4096; ///< each is tried on the name of every module
constexpr std::string_view kAllLinear = "all-linear";

/// Keys of methods that add something to W x + scale B A x. They must be missing, null, false, or empty.
constexpr std::array<std::pair<const char*, std::string_view>, 14> kForeignKeys = {{
    {"lora_bias", "biases of B"},
    {"fan_in_fan_out", "weights stored as (in, out)"},
    {"layers_to_transform", "a choice of layers"},
    {"layer_replication", "repeated layers"},
    {"alora_invocation_tokens", "adapters that begin at a token"},
    {"arrow_config", "routed adapters"},
    {"kasa_config", "KaSA"},
    {"monteclora_config", "MonteCLoRA"},
    {"velora_config", "VeLoRA"},
    {"megatron_config", "Megatron's linears"},
    {"use_qalora", "QALoRA"},
    {"use_bdlora", "block-diagonal adapters"},
    {"trainable_token_indices", "trained rows of the embedding"},
    {"target_modules_to_tie", "adapters that modules share"},
}};

/// Ways to begin that subtract the adapter's first value from the weights, so that it does not belong to the weights
/// of the base model.
constexpr std::array<std::string_view, 5> kChangedWeights = {"pissa", "olora", "corda", "loftq", "lora_ga"};

bool meansNothing(const json& value) {
    return value == json(false) || ((value.is_array() || value.is_object() || value.is_string()) && value.empty());
}

std::string lowerCase(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return text;
}

std::vector<std::string> readNames(ConfigReader& reader, const char* key, const json& list) {
    if (!list.is_array()) {
        reader.bad(key, "must be a list of names");
    }
    if (list.size() > kMostAdapterNames) {
        reader.bad(key, fmt::format("has {} names, more than {}", list.size(), kMostAdapterNames));
    }
    std::vector<std::string> names;
    for (const json& name : list) {
        if (!name.is_string() || name.get_ref<const std::string&>().empty()) {
            reader.bad(key, "must hold names that are not empty");
        }
        names.push_back(name.get<std::string>());
    }
    return names;
}

std::vector<std::string> readNames(ConfigReader& reader, const char* key) {
    const json* list = reader.find(key);
    return list != nullptr ? readNames(reader, key, *list) : std::vector<std::string>{};
}

/// A list of names, or a text.
void readNamesOrRegex(ConfigReader& reader, const char* key, std::vector<std::string>& names, std::string& regex) {
    const json* value = reader.find(key);
    if (value == nullptr) {
        return;
    }
    if (!value->is_string()) {
        names = readNames(reader, key, *value);
        return;
    }
    regex = value->get<std::string>();
    if (regex.empty()) {
        reader.bad(key, "is empty; give a list of names or a regular expression");
    }
}

/// The object of a key such as rank_pattern: `read(key)` of a reader over it gives one value.
template <class T, class Read> std::map<std::string, T> readPatterns(ConfigReader& reader, const char* key, Read read) {
    std::map<std::string, T> patterns;
    const json* object = reader.find(key);
    if (object == nullptr) {
        return patterns;
    }
    ConfigReader inner(*object, reader.file(), std::string(key) + ".");
    if (object->size() > kMostAdapterPatterns) {
        reader.bad(key, fmt::format("has {} entries, more than {}", object->size(), kMostAdapterPatterns));
    }
    for (const auto& [name, value] : object->items()) {
        if (name.empty() || name.find('\0') != std::string::npos || value.is_null()) {
            inner.bad(name, "must be a name with a number");
        }
        patterns[name] = read(inner, name.c_str());
    }
    return patterns;
}

void refuseForeignKeys(ConfigReader& reader) {
    const std::string type = reader.text("peft_type", "LORA");
    if (type != "LORA") {
        reader.unsupported("peft_type", fmt::format("{} adapters are not supported, only LORA", quotedText(type)));
    }
    for (const auto& [key, what] : kForeignKeys) {
        if (const json* value = reader.find(key); value != nullptr && !meansNothing(*value)) {
            reader.unsupported(key, fmt::format("{} are not supported; give an adapter without", what));
        }
    }
    const std::string bias = reader.text("bias", "none");
    if (bias != "none") {
        reader.unsupported("bias",
                           fmt::format("trained biases ({}) are not supported, only \"none\"", quotedText(bias)));
    }
}

std::string readInit(ConfigReader& reader) {
    const json* value = reader.find("init_lora_weights");
    if (value == nullptr || value->is_boolean()) {
        return value == nullptr || value->get<bool>() ? "true" : "false";
    }
    const std::string method = reader.text("init_lora_weights", "");
    if (std::any_of(kChangedWeights.begin(), kChangedWeights.end(),
                    [&](std::string_view known) { return lowerCase(method).starts_with(known); })) {
        reader.unsupported("init_lora_weights",
                           fmt::format("with {} the adapter belongs to changed weights, not to those of the base "
                                       "model; save it with path_initial_model_for_weight_conversion",
                                       quotedText(method)));
    }
    return method;
}

void checkTargets(ConfigReader& reader, const AdapterConfig& config) {
    if (config.targetModules.empty() && config.targetRegex.empty() && config.targetParameters.empty()) {
        reader.bad("target_modules", "names no module, and target_parameters names no parameter");
    }
}

AdapterConfig readAdapterConfig(const json& object, const std::string& file) {
    ConfigReader reader(object, file);
    refuseForeignKeys(reader);
    AdapterConfig config;
    config.rank = reader.integer("r", config.rank, 1, kLargestRank);
    config.alpha = reader.number("lora_alpha", config.alpha, -kLargestAlpha, kLargestAlpha);
    config.dropout = reader.number("lora_dropout", config.dropout, 0, 1);
    config.rsLora = reader.boolean("use_rslora", config.rsLora);
    config.dora = reader.boolean("use_dora", config.dora);
    readNamesOrRegex(reader, "target_modules", config.targetModules, config.targetRegex);
    readNamesOrRegex(reader, "exclude_modules", config.excludeModules, config.excludeRegex);
    config.targetParameters = readNames(reader, "target_parameters");
    config.modulesToSave = readNames(reader, "modules_to_save");
    config.rankPattern = readPatterns<std::int64_t>(reader, "rank_pattern", [](ConfigReader& inner, const char* key) {
        return inner.integer(key, 0, 1, kLargestRank);
    });
    config.alphaPattern = readPatterns<double>(reader, "alpha_pattern", [](ConfigReader& inner, const char* key) {
        return inner.number(key, 0, -kLargestAlpha, kLargestAlpha);
    });
    config.baseModel = reader.text("base_model_name_or_path", "");
    config.initLoraWeights = readInit(reader);
    checkTargets(reader, config);
    return config;
}

/// A whole number without a decimal point, as PEFT writes it.
json numberJson(double value) {
    return value == std::floor(value) && std::abs(value) < 1e15 ? json(static_cast<std::int64_t>(value)) : json(value);
}

json namesJson(const std::vector<std::string>& names, const std::string& regex) {
    return regex.empty() ? json(names) : json(regex);
}

json nullIfEmpty(const json& value) {
    return value.empty() ? json() : value;
}

Regex wholeName(const std::string& begin, const std::string& pattern, const std::string& where) {
    return {"\\A(?:" + begin + "(?:" + pattern + "))\\z", where};
}

bool matchesWhole(const Regex& regex, const std::string& name) {
    return !regex.findAll(name).empty();
}

/// The name itself or one of its ends after a full stop.
bool holdsEndOf(const std::set<std::string, std::less<>>& names, std::string_view name) {
    for (;;) {
        if (names.contains(name)) {
            return true;
        }
        const std::size_t stop = name.find('.');
        if (stop == std::string_view::npos) {
            return false;
        }
        name.remove_prefix(stop + 1);
    }
}

} // namespace

AdapterConfig AdapterConfig::parse(std::string_view text, const std::string& file) {
    return readAdapterConfig(base::parseStrictJson(text, file), file);
}

AdapterConfig AdapterConfig::read(const std::string& path) {
    return readAdapterConfig(base::readStrictJson(path), path);
}

std::string AdapterConfig::text() const {
    json object = {
        {"peft_type", "LORA"},
        {"task_type", "CAUSAL_LM"},
        {"base_model_name_or_path", nullIfEmpty(baseModel)},
        {"r", rank},
        {"lora_alpha", numberJson(alpha)},
        {"lora_dropout", dropout},
        {"use_rslora", rsLora},
        {"use_dora", dora},
        {"target_modules", namesJson(targetModules, targetRegex)},
        {"target_parameters", nullIfEmpty(targetParameters)},
        {"exclude_modules", nullIfEmpty(namesJson(excludeModules, excludeRegex))},
        {"modules_to_save", nullIfEmpty(modulesToSave)},
        {"rank_pattern", json::object()},
        {"alpha_pattern", json::object()},
        {"bias", bias},
        {"fan_in_fan_out", false},
        {"inference_mode", true},
        {"init_lora_weights", initLoraWeights},
    };
    for (const auto& [name, value] : rankPattern) {
        object["rank_pattern"][name] = value;
    }
    for (const auto& [name, value] : alphaPattern) {
        object["alpha_pattern"][name] = numberJson(value);
    }
    if (initLoraWeights == "true" || initLoraWeights == "false") {
        object["init_lora_weights"] = initLoraWeights == "true";
    }
    return object.dump(2) + "\n";
}

double AdapterConfig::scaling(std::int64_t moduleRank, double moduleAlpha) const {
    const auto r = static_cast<double>(moduleRank);
    return moduleAlpha / (rsLora ? std::sqrt(r) : r);
}

AdapterNames::AdapterNames(const AdapterConfig& config, const std::string& file)
    : modules_(config.targetModules.begin(), config.targetModules.end()),
      parameters_(config.targetParameters.begin(), config.targetParameters.end()),
      excluded_(config.excludeModules.begin(), config.excludeModules.end()),
      allLinear_(lowerCase(config.targetRegex) == kAllLinear), rank_(config.rank), alpha_(config.alpha) {
    if (!config.targetRegex.empty() && !allLinear_) {
        moduleRegex_.emplace(wholeName("", config.targetRegex, file + ": target_modules"));
    }
    if (!config.excludeRegex.empty()) {
        excludedRegex_.emplace(wholeName("", config.excludeRegex, file + ": exclude_modules"));
    }
    for (const auto& [pattern, rank] : config.rankPattern) {
        ranks_.emplace_back(wholeName("(?:.*\\.)?", pattern, file + ": rank_pattern"), rank);
    }
    for (const auto& [pattern, alpha] : config.alphaPattern) {
        alphas_.emplace_back(wholeName("(?:.*\\.)?", pattern, file + ": alpha_pattern"), alpha);
    }
}

bool AdapterNames::excludes(const std::string& name) const {
    return holdsEndOf(excluded_, name) || (excludedRegex_ && matchesWhole(*excludedRegex_, name));
}

bool AdapterNames::targetsModule(const std::string& name, bool apart) const {
    if (excludes(name)) {
        return false;
    }
    return (allLinear_ && !apart) || holdsEndOf(modules_, name) || (moduleRegex_ && matchesWhole(*moduleRegex_, name));
}

bool AdapterNames::targetsParameter(const std::string& name) const {
    return holdsEndOf(parameters_, name);
}

std::int64_t AdapterNames::rankOf(const std::string& name) const {
    const auto found =
        std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& entry) { return matchesWhole(entry.first, name); });
    return found == ranks_.end() ? rank_ : found->second;
}

double AdapterNames::alphaOf(const std::string& name) const {
    const auto found = std::find_if(alphas_.begin(), alphas_.end(),
                                    [&](const auto& entry) { return matchesWhole(entry.first, name); });
    return found == alphas_.end() ? alpha_ : found->second;
}

} // namespace vitrine::engine
