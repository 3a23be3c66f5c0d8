// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands/session_commands.h"
#include "app/runner/runs/run_compare.h"
#include "base/error.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/experiment/result_fields.h"
#include "sessions/metric_difference.h"

namespace vitrine::app {

namespace {

using nlohmann::json;
using sessions::OpenMode;
using sessions::SessionFile;

bool isNumber(const std::string& word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// FILE: its last two runs. FILE 1 2: these. FILE FILE: the last of each. FILE 1 FILE 2: these.
std::vector<RunReference> references(const std::vector<std::string>& words) {
    std::vector<RunReference> result;
    std::string file;
    bool fileUsed = true;
    for (const std::string& word : words) {
        if (isNumber(word) && !file.empty()) {
            result.push_back({file, parseRun(word)});
            fileUsed = true;
            continue;
        }
        if (!fileUsed) {
            result.push_back({file, std::nullopt});
        }
        file = word;
        fileUsed = false;
    }
    if (!fileUsed) {
        result.push_back({file, std::nullopt});
    }
    if (result.size() == 1) {
        const auto session = SessionFile::open(result[0].file, OpenMode::ReadOnly);
        const auto runs = session->runs();
        const sessions::RunId last = resolveRun(*session, result[0].run);
        const auto at = std::find_if(runs.begin(), runs.end(), [&](const auto& run) { return run.id == last; });
        if (at == runs.begin()) {
            throw base::BadInput(fmt::format("{}: comparing needs two runs; name a second one", result[0].file));
        }
        result.insert(result.begin(), {result[0].file, std::prev(at)->id});
    }
    if (result.size() != 2) {
        throw base::BadInput(fmt::format("{} runs were named; comparing needs two", result.size()));
    }
    return result;
}

std::string signedChange(const sessions::MetricDifference& row) {
    if (!row.a || !row.b || *row.a == 0) {
        return "";
    }
    return fmt::format("{:+.1f} %", (*row.b / *row.a - 1) * 100);
}

std::string numberText(const std::string& name, const std::optional<double>& value) {
    if (!value) {
        return "–";
    }
    // Integers come back from the comparison as doubles.
    const bool whole = *value == static_cast<double>(static_cast<std::int64_t>(*value));
    return engine::resultValueText(name, whole ? json(static_cast<std::int64_t>(*value)) : json(*value));
}

json valueJson(const std::optional<double>& value) {
    return value ? json(*value) : json();
}

json comparisonJson(const RunComparison& comparison) {
    json spec = json::array();
    for (const auto& row : comparison.spec) {
        spec.push_back({{"key", row.key}, {"a", row.a}, {"b", row.b}});
    }
    json metrics = json::array();
    for (const auto& row : comparison.metrics) {
        json entry = {{"name", row.name}, {"a", valueJson(row.a)}, {"b", valueJson(row.b)}};
        if (row.a && row.b) {
            entry["difference"] = *row.b - *row.a;
            entry["ratio"] = *row.a == 0 ? json() : json(*row.b / *row.a);
        }
        metrics.push_back(std::move(entry));
    }
    json result = {{"spec", std::move(spec)}, {"metrics", std::move(metrics)}};
    json phases = json::array();
    for (const MemoryChange& step : comparison.memory.phases) {
        phases.push_back(
            {{"phase", step.label}, {"peak_bytes_a", valueJson(step.a)}, {"peak_bytes_b", valueJson(step.b)}});
    }
    result["memory"] = {{"sentence", comparison.memory.sentence}, {"phases", std::move(phases)}};
    return result;
}

std::string comparisonText(const RunComparison& comparison, const std::string& a, const std::string& b) {
    std::vector<std::vector<std::string>> spec{{"setting", a, b}};
    for (const auto& row : comparison.spec) {
        spec.push_back({row.key, row.a, row.b});
    }
    std::vector<std::vector<std::string>> metrics{{"result", a, b, "change"}};
    for (const auto& row : comparison.metrics) {
        if (row.a == 0.0 && row.b == 0.0) {
            continue;
        }
        metrics.push_back({row.name, numberText(row.name, row.a), numberText(row.name, row.b), signedChange(row)});
    }
    std::string text = spec.size() > 1 ? engine::tableText(spec) : "the settings are the same\n";
    text += "\n" + engine::tableText(metrics);
    if (!comparison.memory.phases.empty()) {
        std::vector<std::vector<std::string>> memory{{"phase", a, b, "change"}};
        for (const MemoryChange& step : comparison.memory.phases) {
            const sessions::MetricDifference row{"peak_bytes", step.a, step.b};
            memory.push_back(
                {step.label, numberText("peak_bytes", step.a), numberText("peak_bytes", step.b), signedChange(row)});
        }
        text += "\n" + engine::tableText(memory) + comparison.memory.sentence + "\n";
    }
    return text;
}

int compareAndPrint(const std::vector<std::string>& words, const GlobalOptions& options) {
    const std::vector<RunReference> pair = references(words);
    const auto first = SessionFile::open(pair[0].file, OpenMode::ReadOnly);
    const auto second = SessionFile::open(pair[1].file, OpenMode::ReadOnly);
    const sessions::RunId a = resolveRun(*first, pair[0].run);
    const sessions::RunId b = resolveRun(*second, pair[1].run);
    const RunComparison comparison = compareRuns(*first, a, *second, b);
    if (options.json) {
        json result = comparisonJson(comparison);
        result["a"] = {{"file", pair[0].file}, {"run", a}, {"name", first->run(a).name}};
        result["b"] = {{"file", pair[1].file}, {"run", b}, {"name", second->run(b).name}};
        printJson(result);
    } else {
        printOut(comparisonText(comparison, fmt::format("run {}", a), fmt::format("run {}", b)));
    }
    return 0;
}

} // namespace

void addSessionCompare(CLI::App& session, CommandLine& line) {
    CLI::App* command = addCommand(session, "compare", "What differs between two runs: settings, results, memory",
                                   "vitrine session compare runs.vitrine 2 3");
    const auto words = std::make_shared<std::vector<std::string>>();
    command
        ->add_option("runs", *words,
                     "FILE (its last two runs), FILE RUN RUN, FILE FILE (the last of each) or FILE RUN FILE RUN")
        ->type_name("FILE|RUN")
        ->required();
    command->callback(
        [&line, words] { line.action = [&line, words] { return compareAndPrint(*words, line.options); }; });
}

} // namespace vitrine::app
