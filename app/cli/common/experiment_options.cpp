// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/common/experiment_options.h"

#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/strict_json.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::app {

namespace {

using engine::OptionSpec;
using engine::OptionType;
using nlohmann::json;

std::string typeName(const OptionSpec& option) {
    switch (option.type) {
    case OptionType::Bool:
        return option.defaultText == "true" ? "true|false" : "";
    case OptionType::Integer:
        return "N";
    case OptionType::Real:
        return "X";
    case OptionType::Bytes:
        return "SIZE";
    case OptionType::Choice:
        return std::string(option.choices);
    case OptionType::Path:
        return "FILE";
    case OptionType::TokenList:
        return "IDS";
    case OptionType::KeyValues:
        return "KEY=VALUE";
    case OptionType::Text:
    case OptionType::TextList:
        break;
    }
    return "TEXT";
}

/// `workload` may be empty: any.
std::string describe(const OptionSpec& option, std::string_view workload) {
    std::string text(option.help);
    const engine::Workload* row = engine::findWorkload(workload);
    const std::string_view usual = row != nullptr ? engine::defaultTextOf(option, *row) : option.defaultText;
    if (!usual.empty() && option.type != OptionType::Bool) {
        text += fmt::format(" (default {})", usual);
    }
    return text;
}

json valueOf(const OptionSpec& option, const std::vector<std::string>& texts) {
    if (option.type == OptionType::TextList) {
        // Each use of the flag is one text, whatever commas it holds.
        return texts;
    }
    return engine::parseOption(option, texts.back());
}

/// "experiment: max_new_tokens: what" and "max_new_tokens: what" become "--max-new-tokens: what".
std::string withFlagNames(std::string message) {
    constexpr std::string_view kPrefix = "experiment: ";
    if (message.starts_with(kPrefix)) {
        message.erase(0, kPrefix.size());
    }
    const std::string key = message.substr(0, message.find(':'));
    if (engine::findOption(key) != nullptr) {
        message.replace(0, key.size(), engine::optionFlag(key));
    }
    return message;
}

} // namespace

ExperimentOptions::ExperimentOptions(CLI::App& command, std::string workload, bool plan,
                                     const std::vector<std::string>& skip)
    : command_(command), workload_(std::move(workload)), plan_(plan) {
    for (const OptionSpec& option : engine::optionTable()) {
        const std::string key(option.key);
        // --set also takes keys of the experiment; `plan` is a command of its own.
        if (key == "set" || key == "plan" || workload_.empty() || !engine::optionApplies(option, workload_, plan_) ||
            std::find(skip.begin(), skip.end(), key) != skip.end()) {
            continue;
        }
        addTableOption(key);
    }
    command.add_option("--set", set_, "Any key of the experiment, or a config field of a synthetic model")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group("Experiment");
    specOption_ = command.add_option("--spec", specFile_, "Start from this experiment file; other options override it")
                      ->type_name("FILE")
                      ->group("Experiment");
    command.add_flag("--dump-spec", dumpSpec_, "Print the experiment that would run, and stop")->group("Experiment");
    command
        .add_option("--session", sessionFile_, "Append the run to this session file; it is made when it is not there")
        ->type_name("FILE")
        ->group("Experiment");
}

void ExperimentOptions::addTableOption(const std::string& key) {
    const OptionSpec& option = *engine::findOption(key);
    CLI::Option* added = command_.add_option(engine::optionFlag(key), values_[key], describe(option, workload_));
    // CLI11 lets an option whose values go to a list take all words that follow.
    added->type_name(typeName(option))->group(std::string(option.group))->allow_extra_args(false);
    const std::string bare = option.type == OptionType::Bool ? "true" : std::string(option.bareText);
    if (!bare.empty()) {
        added->expected(0, 1)->default_str(bare);
    } else {
        added->expected(1);
    }
    if (option.type == OptionType::TextList) {
        added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
        added->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    options_[key] = added;
}

void ExperimentOptions::addPositional(const std::string& key, const std::string& shownAs) {
    const OptionSpec& option = *engine::findOption(key);
    options_[key] = command_.add_option(key, values_[key], describe(option, workload_))
                        ->type_name(shownAs)
                        ->expected(1)
                        ->allow_extra_args(false);
}

void ExperimentOptions::takeSpecPositional() {
    command_.remove_option(specOption_);
    specOption_ = command_.add_option("spec", specFile_, "Experiment file (JSON); -: standard input")
                      ->type_name("SPEC.json")
                      ->required();
}

void ExperimentOptions::applySet(json& experiment) const {
    for (const std::string& pair : set_) {
        const std::size_t equals = pair.find('=');
        if (equals == std::string::npos || equals == 0) {
            throw base::BadInput(fmt::format("--set: \"{}\" must be KEY=VALUE", pair));
        }
        const std::string key = pair.substr(0, equals);
        const OptionSpec* option = engine::findOption(key);
        if (option != nullptr && option->type != OptionType::KeyValues) {
            experiment[key] = engine::parseOption(*option, pair.substr(equals + 1));
        } else {
            json& fields = experiment["set"];
            if (!fields.is_object()) {
                fields = json::object();
            }
            fields.update(engine::parseOption(*engine::findOption("set"), pair));
        }
    }
}

void ExperimentOptions::applyFlags(json& experiment) const {
    for (const auto& [key, option] : options_) {
        if (option->count() == 0) {
            continue;
        }
        const OptionSpec& spec = *engine::findOption(key);
        const bool list = spec.type == OptionType::TextList || spec.type == OptionType::KeyValues;
        if (!list && option->count() > 1) {
            base::logWarning(
                fmt::format("{}: given {} times; the last one counts", engine::optionFlag(key), option->count()));
        }
        experiment[key] = valueOf(spec, option->results());
    }
}

engine::Experiment ExperimentOptions::experiment() const {
    json experiment = {{"vitrine", 1}};
    if (!specFile_.empty()) {
        experiment =
            specFile_ == "-" ? base::readStrictJson(std::cin, "standard input") : base::readStrictJson(specFile_);
        if (!experiment.is_object()) {
            throw base::BadInput(
                fmt::format("{}: must be a JSON object with the keys vitrine and workload", specFile_));
        }
    }
    try {
        if (!workload_.empty()) {
            if (experiment.contains("workload") && experiment["workload"] != workload_) {
                throw base::BadInput(fmt::format("{}: workload: this command does {}; use `vitrine run {}`", specFile_,
                                                 workload_, specFile_));
            }
            experiment["workload"] = workload_;
        }
        if (plan_) {
            experiment["plan"] = true;
        }
        applySet(experiment);
        applyFlags(experiment);
        if (modelFallback_ && !experiment.contains("model")) {
            json filled = modelFallback_(experiment);
            filled.merge_patch(experiment);
            experiment = std::move(filled);
        }
        return engine::Experiment::parse(experiment, specFile_.empty()  ? "experiment"
                                                     : specFile_ == "-" ? "standard input"
                                                                        : specFile_);
    } catch (const base::BadInput& error) {
        throw base::BadInput(withFlagNames(error.message()));
    }
}

} // namespace vitrine::app
