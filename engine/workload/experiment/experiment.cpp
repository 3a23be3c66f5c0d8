// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/experiment.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/edit_distance.h"
#include "base/error.h"
#include "base/json_values.h"
#include "base/units.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

std::string_view nearestKey(std::string_view key) {
    constexpr std::size_t kLongest = 64; // names longer than this are no typing mistake: compare their beginning
    std::string_view best;
    std::size_t bestDistance = std::numeric_limits<std::size_t>::max();
    for (const OptionSpec& option : optionTable()) {
        const std::size_t distance = base::editDistance(key.substr(0, kLongest), option.key);
        if (distance < bestDistance) {
            bestDistance = distance;
            best = option.key;
        }
    }
    return best;
}

/// The workloads of which `is` holds, as errors name them: "load", "generate and batch".
template <class Is> std::string namesWhere(const Is& is) {
    std::vector<std::string_view> names;
    for (const Workload* workload : workloadTable()) {
        if (is(*workload)) {
            names.push_back(workload->name);
        }
    }
    return fmt::format("{}", fmt::join(names, " and "));
}

/// What must stand together in an experiment of any workload, and what its own asks for.
void checkTogether(const Experiment& experiment, const std::string& name) {
    const Workload& workload = experiment.workload();
    if (workload.needsModel == nullptr || workload.needsModel(experiment)) {
        requireOption(experiment, name, "model", "name a model folder, a GGUF file, ORG/NAME or synthetic:NAME");
    }
    const std::string dtype = experiment.text("dtype");
    if (!workload.takesAllDTypes && (dtype == "float16" || dtype == "float64")) {
        failOption(name, "dtype",
                   fmt::format("{} is for {} only; choose float32 or bfloat16", dtype,
                               namesWhere([](const Workload& row) { return row.takesAllDTypes; })));
    }
    if (!workload.takesBothWeights && experiment.text("weights") == "both") {
        failOption(name, "weights",
                   fmt::format("both is for {} only; choose quantized or dequantized",
                               namesWhere([](const Workload& row) { return row.takesBothWeights; })));
    }
    if (workload.check != nullptr) {
        workload.check(experiment, name);
    }
    for (const std::string_view key : {"max_context", "max_batch"}) {
        if (experiment.isPlan() && !workload.searches && experiment.flag(key)) {
            failOption(name, key, fmt::format("only a plan of {} searches", namesWhere([](const Workload& row) {
                                                  return row.searches;
                                              })));
        }
    }
}

/// From the canonical JSON form.
OptionValue typedValue(const OptionSpec& option, const Json& value) {
    switch (option.type) {
    case OptionType::Bool:
        return value.get<bool>();
    case OptionType::Integer:
        return value.get<std::int64_t>();
    case OptionType::Real:
        return value.get<double>();
    case OptionType::Bytes:
        return value.get<std::uint64_t>();
    case OptionType::Text:
    case OptionType::Choice:
    case OptionType::Path:
        return value.get<std::string>();
    case OptionType::TokenList:
        return value.get<std::vector<std::int32_t>>();
    case OptionType::TextList:
        return value.get<std::vector<std::string>>();
    case OptionType::KeyValues:
        return value.get<std::map<std::string, std::string>>();
    }
    throw base::Internal("option type out of range");
}

/// Which alternative of OptionValue holds values of the type.
std::size_t alternativeOf(OptionType type) {
    switch (type) {
    case OptionType::Bool:
        return 0;
    case OptionType::Integer:
        return 1;
    case OptionType::Real:
        return 2;
    case OptionType::Bytes:
        return 3;
    case OptionType::Text:
    case OptionType::Choice:
    case OptionType::Path:
        return 4;
    case OptionType::TokenList:
        return 5;
    case OptionType::TextList:
        return 6;
    case OptionType::KeyValues:
        return 7;
    }
    throw base::Internal("option type out of range");
}

Json jsonOf(const OptionValue& value) {
    return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string optionValueText(const OptionSpec& option, const Json& value) {
    return option.type == OptionType::Bytes && value.is_number_unsigned()
               ? base::formatBytes(value.get<std::uint64_t>())
               : valueText(value);
}

const OptionSpec& optionNamed(std::string_view key) {
    const OptionSpec* option = findOption(key);
    if (option == nullptr) {
        throw base::Internal(fmt::format("{}: no such option", key));
    }
    return *option;
}

} // namespace

Json parseOption(const OptionSpec& option, std::string_view text) {
    return valueFromText(option, text, {});
}

Experiment Experiment::parse(const Json& experiment, const std::string& name) {
    const std::string file = name.empty() ? "experiment" : name;
    if (!experiment.is_object()) {
        throw base::BadInput(file + ": must be a JSON object with the keys vitrine and workload");
    }
    if (!experiment.contains("vitrine") || !experiment["vitrine"].is_number_integer() || experiment["vitrine"] != 1) {
        failOption(file, "vitrine", "must be 1, the version of the format");
    }
    const bool named = experiment.contains("workload") && experiment["workload"].is_string();
    const std::string workload = named ? experiment["workload"].get<std::string>() : std::string();
    Experiment out;
    out.workload_ = findWorkload(workload);
    if (out.workload_ == nullptr) {
        std::vector<std::string_view> names;
        for (const Workload* row : workloadTable()) {
            names.push_back(row->name);
        }
        failOption(file, "workload", fmt::format("must be one of {}", fmt::join(names, ", ")));
    }
    const bool plan = experiment.contains("plan") && experiment["plan"].is_boolean() && experiment["plan"].get<bool>();
    for (const auto& [key, value] : experiment.items()) {
        if (key == "vitrine" || key == "workload") {
            continue;
        }
        const OptionSpec* option = findOption(key);
        if (option == nullptr) {
            failOption(file, key, fmt::format("unknown key; the nearest known one is {}", nearestKey(key)));
        }
        if (!optionApplies(*option, workload, plan)) {
            failOption(file, key, fmt::format("{} does not take it; remove it", workload));
        }
        if (!value.is_null()) {
            out.values_[key] = typedValue(*option, canonicalValue(*option, value, file));
        }
    }
    out.addDefaults();
    checkTogether(out, file);
    return out;
}

std::optional<Experiment> Experiment::read(std::string_view json) {
    const Json value = base::parsedObject(json);
    Experiment out;
    out.workload_ = findWorkload(base::textAt(value, "workload"));
    if (out.workload_ == nullptr) {
        return std::nullopt;
    }
    const auto found = value.find("plan");
    const bool plan = found != value.end() && *found == true && out.workload_->plan != nullptr;
    for (const auto& [key, held] : value.items()) {
        const OptionSpec* option = findOption(key);
        if (option == nullptr || held.is_null() || !optionApplies(*option, out.workload_->name, plan)) {
            continue;
        }
        try {
            out.values_[key] = typedValue(*option, canonicalValue(*option, held, key));
        } catch (const base::BadInput&) {
            continue; // of a version with other values
        }
    }
    out.addDefaults();
    return out;
}

void Experiment::addDefaults() {
    const bool plan = isPlan();
    for (const OptionSpec& option : optionTable()) {
        const std::string_view text = defaultTextOf(option, *workload_);
        if (!text.empty() && !values_.contains(option.key) && optionApplies(option, workload_->name, plan)) {
            values_.emplace(option.key, typedValue(option, parseOption(option, text)));
        }
    }
}

bool Experiment::isPlan() const {
    return flag("plan");
}

Experiment Experiment::asPlan() const {
    Json planned = toJson();
    planned["plan"] = true;
    return parse(planned, "experiment");
}

Experiment Experiment::as(const Workload& workload) const {
    Experiment out;
    out.workload_ = &workload;
    for (const OptionSpec& option : optionTable()) {
        if (!optionApplies(option, workload.name, false)) {
            continue;
        }
        const std::string_view text = defaultTextOf(option, workload);
        const auto found = values_.find(option.key);
        // A default of the one is not a wish for the other.
        const bool wished = found != values_.end() && (text == defaultTextOf(option, *workload_) ||
                                                       valueText(option.key) != defaultTextOf(option, *workload_));
        if (wished) {
            out.values_.insert(*found);
        } else if (!text.empty()) {
            out.values_.emplace(option.key, typedValue(option, parseOption(option, text)));
        }
    }
    return out;
}

bool Experiment::has(std::string_view key) const {
    return values_.contains(optionNamed(key).key);
}

template <class T> std::optional<T> Experiment::valueOf(std::string_view key) const {
    const OptionSpec& option = optionNamed(key);
    const auto found = values_.find(key);
    if (found == values_.end() && option.defaultText.empty()) {
        return std::nullopt;
    }
    const OptionValue value =
        found != values_.end() ? found->second : typedValue(option, parseOption(option, option.defaultText));
    const T* typed = std::get_if<T>(&value);
    if (typed == nullptr) {
        throw base::Internal(fmt::format("{}: is an option of another type", key));
    }
    return *typed;
}

template <class T> T Experiment::valueOrInternal(std::string_view key) const {
    const std::optional<T> value = valueOf<T>(key);
    if (!value) {
        throw base::Internal(fmt::format("{}: has no value and no default", key));
    }
    return *value;
}

bool Experiment::flag(std::string_view key) const {
    return valueOrInternal<bool>(key);
}

std::string Experiment::text(std::string_view key) const {
    return valueOf<std::string>(key).value_or("");
}

std::int64_t Experiment::integer(std::string_view key) const {
    return valueOrInternal<std::int64_t>(key);
}

double Experiment::real(std::string_view key) const {
    return valueOrInternal<double>(key);
}

std::uint64_t Experiment::bytes(std::string_view key) const {
    return valueOrInternal<std::uint64_t>(key);
}

std::optional<std::int64_t> Experiment::maybeInteger(std::string_view key) const {
    return valueOf<std::int64_t>(key);
}

std::optional<double> Experiment::maybeReal(std::string_view key) const {
    return valueOf<double>(key);
}

std::optional<std::uint64_t> Experiment::maybeBytes(std::string_view key) const {
    return valueOf<std::uint64_t>(key);
}

std::vector<std::int32_t> Experiment::tokens(std::string_view key) const {
    return valueOf<std::vector<std::int32_t>>(key).value_or(std::vector<std::int32_t>());
}

std::vector<std::string> Experiment::texts(std::string_view key) const {
    return valueOf<std::vector<std::string>>(key).value_or(std::vector<std::string>());
}

std::map<std::string, std::string> Experiment::pairs(std::string_view key) const {
    return valueOf<std::map<std::string, std::string>>(key).value_or(std::map<std::string, std::string>());
}

void Experiment::set(std::string_view key, const OptionValue& value) {
    const OptionSpec& option = optionNamed(key);
    if (!optionApplies(option, workload_->name, isPlan())) {
        throw base::Internal(fmt::format("{}: {} does not take it", key, workload_->name));
    }
    if (value.index() != alternativeOf(option.type)) {
        throw base::Internal(fmt::format("{}: is an option of another type", key));
    }
    values_.insert_or_assign(std::string(key), value);
}

void Experiment::unset(std::string_view key) {
    values_.erase(std::string(optionNamed(key).key));
    addDefaults();
}

std::string Experiment::jsonText() const {
    return base::compactText(toJson());
}

std::string Experiment::valueText(std::string_view key) const {
    const OptionSpec& option = optionNamed(key);
    const auto found = values_.find(option.key);
    return found == values_.end() ? std::string() : optionValueText(option, jsonOf(found->second));
}

Json Experiment::toJson() const {
    Json out = {{"vitrine", 1}, {"workload", workload_->name}};
    for (const auto& [key, value] : values_) {
        out[key] = jsonOf(value);
    }
    return out;
}

std::vector<SpecDifference> diffExperiments(const Json& a, const Json& b) {
    std::vector<std::string> keys = {"vitrine", "workload"};
    for (const OptionSpec& option : optionTable()) {
        keys.emplace_back(option.key);
    }
    for (const Json* side : {&a, &b}) {
        for (const auto& [key, value] : side->items()) {
            if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
                keys.push_back(key);
            }
        }
    }
    const auto textOf = [](const Json& side, const std::string& key) {
        if (!side.contains(key) || side[key].is_null()) {
            return std::string("–");
        }
        const OptionSpec* option = findOption(key);
        return option != nullptr ? optionValueText(*option, side[key]) : valueText(side[key]);
    };
    std::vector<SpecDifference> differences;
    for (const std::string& key : keys) {
        const Json left = a.contains(key) ? a[key] : Json();
        const Json right = b.contains(key) ? b[key] : Json();
        if (left != right) {
            differences.push_back({key, textOf(a, key), textOf(b, key)});
        }
    }
    return differences;
}

} // namespace vitrine::engine
