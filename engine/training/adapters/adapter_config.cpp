// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/strict_json.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/training/adapters/adapter_keys.h"

namespace vitrine::engine {

using nlohmann::json;

namespace {

constexpr std::int64_t kLargestRank = 65536;
constexpr double kLargestAlpha = 1e9;
constexpr std::size_t kMostAdapterNames = 65536;   ///< of a list
constexpr std::size_t kMostAdapterPatterns = 4096; ///< each is tried on the name of every module
constexpr std::size_t kMostIndices = 1U << 20;
constexpr std::int64_t kLargestIndex = std::int64_t{1} << 40;
constexpr std::string_view kAllLinear = "all-linear";

/// Ways to begin that subtract the adapter's first value from the weights, so that it does not belong to the weights
/// of the base model.
constexpr std::array<std::string_view, 5> kChangedWeights = {"pissa", "olora", "corda", "loftq", "lora_ga"};

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

std::string readBias(ConfigReader& reader) {
    const std::string bias = reader.text("bias", "none");
    if (bias != "none" && bias != "all" && bias != "lora_only") {
        reader.bad("bias", fmt::format("is {}, but must be \"none\", \"all\" or \"lora_only\"", quotedText(bias)));
    }
    return bias;
}

/// A list of whole numbers that are not negative, or one of them.
std::vector<std::int64_t> readIndices(ConfigReader& reader, const char* key, const json& value) {
    const json list = value.is_number() ? json::array({value}) : value;
    if (!list.is_array() || list.size() > kMostIndices) {
        reader.bad(key, "must be a list of numbers");
    }
    std::vector<std::int64_t> out;
    for (const json& index : list) {
        if (!index.is_number_integer() || index < 0 || index > kLargestIndex) {
            reader.bad(key, "must hold whole numbers that are not negative");
        }
        out.push_back(index.get<std::int64_t>());
    }
    return out;
}

/// Of which layers the modules in target_modules are adapted.
void readLayers(ConfigReader& reader, AdapterConfig& config) {
    if (const json* layers = reader.find("layers_to_transform"); layers != nullptr) {
        config.layers = readIndices(reader, "layers_to_transform", *layers);
    }
    if (const json* pattern = reader.find("layers_pattern"); pattern != nullptr && !meansNothing(*pattern)) {
        config.layersPattern = pattern->is_string() ? std::vector<std::string>{pattern->get<std::string>()}
                                                    : readNames(reader, "layers_pattern", *pattern);
    }
    if (!config.layers.empty() && !config.targetRegex.empty()) {
        reader.bad("layers_to_transform", "needs target_modules as a list of names");
    }
}

/// A list belongs to the embedding, an object names modules.
void readTrainedRows(ConfigReader& reader, AdapterConfig& config) {
    constexpr const char* kKey = "trainable_token_indices";
    const json* value = reader.find(kKey);
    if (value == nullptr || meansNothing(*value)) {
        return;
    }
    if (!value->is_object()) {
        config.trainedRows["embed_tokens"] = readIndices(reader, kKey, *value);
        return;
    }
    for (const auto& [module, indices] : value->items()) {
        config.trainedRows[module] = readIndices(reader, kKey, indices);
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
    if (config.targetModules.empty() && config.targetRegex.empty() && config.targetParameters.empty() &&
        config.modulesToSave.empty() && config.trainedRows.empty()) {
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
    config.bias = readBias(reader);
    config.tiesWeights = reader.boolean("ensure_weight_tying", config.tiesWeights);
    readLayers(reader, config);
    readTrainedRows(reader, config);
    checkTargets(reader, config);
    config.unknownKeys = unknownKeys(object, reader);
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
    AdapterConfig config = readAdapterConfig(base::parseStrictJson(text, file), file);
    config.origin = text;
    return config;
}

AdapterConfig AdapterConfig::read(const std::string& path) {
    const json object = base::readStrictJson(path);
    AdapterConfig config = readAdapterConfig(object, path);
    config.origin = object.dump();
    return config;
}

std::string AdapterConfig::text() const {
    json object = {{"fan_in_fan_out", false}};
    if (!origin.empty()) {
        object = json::parse(origin);
    }
    object.update({
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
        {"inference_mode", true},
        {"init_lora_weights", initLoraWeights},
    });
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
      excluded_(config.excludeModules.begin(), config.excludeModules.end()), saved_(config.modulesToSave),
      allLinear_(lowerCase(config.targetRegex) == kAllLinear), rank_(config.rank), alpha_(config.alpha) {
    for (const std::string& pattern : config.layersPattern) {
        layerPatterns_.emplace_back("\\A(?:.*?\\.)?(?:" + pattern + ")\\.[0-9]+\\.", file + ": layers_pattern");
    }
    if (layerPatterns_.empty()) {
        layerPatterns_.emplace_back("\\A.*?\\.[^.]*\\.[0-9]+\\.", file);
    }
    for (const std::int64_t layer : config.layers) {
        layers_.insert(std::to_string(layer));
    }
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
    return savesPartOf(name) || holdsEndOf(excluded_, name) || (excludedRegex_ && matchesWhole(*excludedRegex_, name));
}

bool AdapterNames::savesPartOf(const std::string& name) const {
    const std::string dotted = "." + name + ".";
    return std::ranges::any_of(
        saved_, [&](const std::string& each) { return dotted.find("." + each + ".") != std::string::npos; });
}

bool AdapterNames::saves(const std::string& module) const {
    return std::ranges::any_of(saved_, [&](const std::string& each) { return module.ends_with(each); });
}

/// A name that target_modules has whole is not asked for its layer, as in PEFT.
bool AdapterNames::hasLayerOf(const std::string& name) const {
    if (layers_.empty() || modules_.contains(name)) {
        return true;
    }
    for (const Regex& pattern : layerPatterns_) {
        const auto found = pattern.findAll(name);
        if (!found.empty()) { // up to the full stop after the layer's number
            const std::string before = name.substr(0, found.front().second - 1);
            return layers_.contains(before.substr(before.rfind('.') + 1));
        }
    }
    return false;
}

bool AdapterNames::targetsModule(const std::string& name, bool apart) const {
    if (excludes(name)) {
        return false;
    }
    return (allLinear_ && !apart) || (holdsEndOf(modules_, name) && hasLayerOf(name)) ||
           (moduleRegex_ && matchesWhole(*moduleRegex_, name));
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
