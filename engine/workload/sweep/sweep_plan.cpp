// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/sweep/sweep_plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/json_values.h"
#include "base/output_file.h"
#include "base/sha256.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

std::string_view trimmed(std::string_view text) {
    const auto isSpace = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!text.empty() && isSpace(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && isSpace(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

std::optional<double> numberFrom(std::string_view text) {
    text = trimmed(text);
    double out = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
    return whole && std::isfinite(out) ? std::optional(out) : std::nullopt;
}

const OptionSpec& optionThatVaries(const std::string& key) {
    const OptionSpec* option = findOption(key);
    if (option == nullptr) {
        throw base::BadInput(fmt::format("{}: there is no such option; `vitrine run --help` lists them", key));
    }
    switch (option->type) {
    case OptionType::TokenList:
    case OptionType::TextList:
    case OptionType::KeyValues:
        throw base::BadInput(fmt::format("{}: a list cannot vary; choose an option with one value", key));
    default:
        return *option;
    }
}

/// "1e-5..4e-4 x2": every number from the first to the last; nothing where the text is no such row.
std::optional<std::vector<std::string>> numberRow(const std::string& key, std::string_view text) {
    const std::size_t dots = text.find("..");
    const std::size_t step = text.find_last_of("x+");
    if (dots == std::string_view::npos || step == std::string_view::npos || step < dots) {
        return std::nullopt;
    }
    const auto first = numberFrom(text.substr(0, dots)), last = numberFrom(text.substr(dots + 2, step - dots - 2)),
               by = numberFrom(text.substr(step + 1));
    const bool factor = text[step] == 'x';
    const bool grows = first && last && by && *last >= *first && (factor ? *by > 1 && *first > 0 : *by > 0);
    if (!grows) {
        throw base::BadInput(
            fmt::format("{}: \"{}\" is no row of numbers; write FIRST..LAST xFACTOR or FIRST..LAST +STEP, such as "
                        "1e-5..4e-4 x2",
                        key, text));
    }
    constexpr double kRounding = 1e-9;
    std::vector<std::string> out;
    for (double value = *first; value <= *last * (1 + kRounding); value = factor ? value * *by : value + *by) {
        if (out.size() == kMostSweepRuns) {
            throw base::BadInput(fmt::format("{}: \"{}\" has more than {} values", key, text, kMostSweepRuns));
        }
        out.push_back(fmt::format("{:.10g}", value));
    }
    return out;
}

std::vector<std::string> splitAtCommas(std::string_view text) {
    std::vector<std::string> out;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        out.emplace_back(trimmed(text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return out;
}

/// How far a run's values lie from the middle of their lists, in places.
std::size_t distanceFromMiddle(const SweepPlan& plan, const std::vector<std::size_t>& places) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t middle = plan.options[i].values.size() / 2;
        out += places[i] > middle ? places[i] - middle : middle - places[i];
    }
    return out;
}

/// The value as part of a file's name.
std::string plainWord(const std::string& value) {
    std::string out = value;
    for (char& c : out) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
        c = plain ? c : '_';
    }
    return out;
}

/// Some file systems do not tell capital letters from small ones.
std::string withoutCase(std::string word) {
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return word;
}

/// A word that no other value of the option has, and that names of files have room for.
std::string wordOf(const SweepPlan& plan, const std::string& key, const std::string& value) {
    constexpr std::size_t kLongestWord = 48, kMarkLetters = 8;
    const std::string plain = plainWord(value);
    const auto option = std::ranges::find(plan.options, key, &SweepOption::key);
    const bool alone =
        option == plan.options.end() || std::ranges::none_of(option->values, [&](const std::string& other) {
            return other != value && withoutCase(plainWord(other)) == withoutCase(plain);
        });
    return alone && plain.size() <= kLongestWord
               ? plain
               : fmt::format("{}-{}", plain.substr(0, kLongestWord), base::sha256Hex(value).substr(0, kMarkLetters));
}

/// "lr-2e-4-rank-16": a name of a file or folder.
std::string fileWord(const SweepPlan& plan, const SweepValues& values) {
    std::string out;
    for (const auto& [key, value] : values) {
        out += (out.empty() ? "" : "-") + key + "-" + wordOf(plan, key, value);
    }
    return out;
}

std::string pathApart(const std::string& path, const std::string& word, bool folder) {
    if (folder) {
        return path + "/" + word;
    }
    const std::size_t name = path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/') + 1;
    const std::size_t dot = path.find_last_of('.');
    return dot == std::string::npos || dot <= name ? path + "-" + word
                                                   : path.substr(0, dot) + "-" + word + path.substr(dot);
}

} // namespace

std::string_view sweepOrderName(SweepOrder order) {
    return order == SweepOrder::AsGiven ? "as-given" : "middle-out";
}

std::optional<SweepOrder> sweepOrderByName(std::string_view name) {
    for (const SweepOrder order : {SweepOrder::AsGiven, SweepOrder::FromTheMiddleOut}) {
        if (name == sweepOrderName(order)) {
            return order;
        }
    }
    return std::nullopt;
}

StopRule parseStopRule(std::string_view text) {
    StopRule out;
    bool hasAbove = false;
    for (const std::string& part : splitAtCommas(text)) {
        const std::size_t equals = std::min(part.find('='), part.size());
        const std::string name = part.substr(0, equals);
        const auto value = numberFrom(equals < part.size() ? std::string_view(part).substr(equals + 1) : "");
        constexpr double kLatestStep = 1e12;
        if (name == "above" && value && *value >= 0) {
            out.above = *value;
            hasAbove = true;
        } else if (name == "from" && value && *value >= 0 && *value < kLatestStep && *value == std::floor(*value)) {
            out.from = static_cast<std::int64_t>(*value);
        } else {
            throw base::BadInput(fmt::format(
                "--stop-rule: \"{}\" is not above=LOSS or from=STEP; write for example above=0.1,from=150", part));
        }
    }
    if (!hasAbove) {
        throw base::BadInput("--stop-rule: above is missing; write for example above=0.1,from=150");
    }
    return out;
}

std::string stopRuleText(const StopRule& rule) {
    return fmt::format("above={:g},from={}", rule.above, rule.from);
}

std::string sweepRunName(const SweepValues& values) {
    std::string out;
    for (const auto& [key, value] : values) {
        std::string words = key;
        std::ranges::replace(words, '_', ' ');
        out += (out.empty() ? "" : ", ") + words + " " + value;
    }
    return out;
}

std::vector<std::string> parseSweepValues(const std::string& key, std::string_view text) {
    const OptionSpec& option = optionThatVaries(key);
    std::vector<std::string> out = numberRow(key, text).value_or(std::vector<std::string>());
    if (out.empty()) {
        out = splitAtCommas(text);
    }
    std::vector<Json> seen;
    for (const std::string& value : out) {
        if (value.empty()) {
            throw base::BadInput(fmt::format("{}: a value is missing; write {}=VALUE,VALUE", key, key));
        }
        Json canonical = valueFromText(option, value, "");
        if (std::ranges::find(seen, canonical) != seen.end()) {
            throw base::BadInput(fmt::format("{}: {} is there twice; take one of them away", key, value));
        }
        seen.push_back(std::move(canonical));
    }
    return out;
}

SweepOption parseSweepOption(const Workload& workload, std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
        throw base::BadInput(fmt::format("--vary: \"{}\" must be KEY=VALUE,VALUE", text));
    }
    std::string key(trimmed(text.substr(0, equals)));
    key.erase(0, key.find_first_not_of('-') == std::string::npos ? 0 : key.find_first_not_of('-'));
    std::ranges::replace(key, '-', '_');
    try {
        if (!optionApplies(optionThatVaries(key), workload.name, false)) {
            throw base::BadInput(fmt::format("{}: {} does not take this option", key, workload.name));
        }
        return {key, parseSweepValues(key, text.substr(equals + 1))};
    } catch (const base::BadInput& error) {
        throw base::BadInput("--vary: " + error.message());
    }
}

std::vector<SweepValues> sweepCombinations(const SweepPlan& plan) {
    std::size_t count = 1;
    for (const SweepOption& option : plan.options) {
        count *= option.values.size();
        if (count > kMostSweepRuns) {
            throw base::BadInput(fmt::format("the sweep has more than {} runs; give fewer values", kMostSweepRuns));
        }
    }
    std::vector<std::vector<std::size_t>> all(count, std::vector<std::size_t>(plan.options.size()));
    for (std::size_t run = 0; run < count; ++run) {
        std::size_t rest = run;
        for (std::size_t i = plan.options.size(); i-- > 0;) {
            all[run][i] = rest % plan.options[i].values.size();
            rest /= plan.options[i].values.size();
        }
    }
    if (plan.order == SweepOrder::FromTheMiddleOut) {
        std::ranges::stable_sort(all, {}, [&](const auto& places) { return distanceFromMiddle(plan, places); });
    }
    std::vector<SweepValues> out;
    for (const std::vector<std::size_t>& places : all) {
        SweepValues& values = out.emplace_back();
        for (std::size_t i = 0; i < places.size(); ++i) {
            values.emplace_back(plan.options[i].key, plan.options[i].values[places[i]]);
        }
    }
    return out;
}

Experiment sweepExperiment(const SweepPlan& plan, const SweepValues& values) {
    Json spec = base::parsedObject(plan.base);
    for (const auto& [key, value] : values) {
        spec[key] = parseOption(optionThatVaries(key), value);
    }
    const Experiment checked = Experiment::parse(spec, sweepRunName(values));
    Experiment out = checked;
    for (const WorkloadOutput& output : checked.workload().outputs) {
        const bool varies = std::ranges::any_of(values, [&](const auto& one) { return one.first == output.key; });
        if (!varies && checked.has(output.key) && !checked.text(output.key).empty()) {
            out.set(output.key, pathApart(checked.text(output.key), fileWord(plan, values), output.kind == nullptr));
        }
    }
    return out;
}

std::vector<SweepRun> sweepRuns(const SweepPlan& plan) {
    std::vector<SweepRun> out;
    for (SweepValues& values : sweepCombinations(plan)) {
        Experiment experiment = sweepExperiment(plan, values);
        out.push_back({std::move(values), std::move(experiment)});
    }
    return out;
}

Json sweepPlanJson(const SweepPlan& plan) {
    Json options = Json::array();
    for (const SweepOption& option : plan.options) {
        options.push_back({{"key", option.key}, {"values", option.values}});
    }
    Json out = {{"name", plan.name},
                {"base", base::parsedObject(plan.base)},
                {"options", std::move(options)},
                {"order", sweepOrderName(plan.order)}};
    if (plan.rule) {
        out["rule"] = stopRuleText(*plan.rule);
    }
    return out;
}

std::optional<SweepPlan> readSweepPlan(const Json& value) {
    try {
        SweepPlan out;
        out.name = value.at("name").get<std::string>();
        out.base = base::compactText(value.at("base"));
        for (const Json& option : value.at("options")) {
            out.options.push_back(
                {option.at("key").get<std::string>(), option.at("values").get<std::vector<std::string>>()});
        }
        out.order = sweepOrderByName(base::textAt(value, "order")).value_or(SweepOrder::AsGiven);
        if (value.contains("rule")) {
            out.rule = parseStopRule(base::textAt(value, "rule"));
        }
        return out;
    } catch (const Json::exception&) {
        return std::nullopt;
    } catch (const base::BadInput&) {
        return std::nullopt;
    }
}

} // namespace vitrine::engine
