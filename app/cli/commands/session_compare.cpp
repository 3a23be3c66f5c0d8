// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands/session_commands.h"
#include "app/runner/runs/run_compare.h"
#include "app/runner/runs/run_conditions.h"
#include "base/error.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/experiment/run_comparison.h"

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

std::string numberText(const std::string& name, const std::optional<double>& value) {
    return value ? (*value < 0 ? "−" : "") + engine::signedValueText(name, std::abs(*value)).substr(1) : "–";
}

json valueJson(const std::optional<double>& value) {
    return value ? json(*value) : json();
}

std::string_view verdictName(engine::Verdict verdict) {
    switch (verdict) {
    case engine::Verdict::Same:
        return "same";
    case engine::Verdict::Better:
        return "better";
    case engine::Verdict::Worse:
        return "worse";
    case engine::Verdict::Differs:
        return "differs";
    }
    return "";
}

json comparisonJson(const RunComparison& comparison) {
    json spec = json::array(), surroundings = json::array(), metrics = json::array(), phases = json::array();
    for (const auto& row : comparison.spec) {
        spec.push_back({{"key", row.key}, {"a", row.a}, {"b", row.b}});
    }
    for (const auto& row : comparison.surroundings) {
        surroundings.push_back({{"key", row.key}, {"a", row.a}, {"b", row.b}});
    }
    for (const engine::ResultChange& row : comparison.results) {
        json entry = {{"name", row.path}, {"a", valueJson(row.a)}, {"b", valueJson(row.b)}};
        if (row.judgement) {
            entry["difference"] = row.judgement->change;
            entry["ratio"] = *row.a == 0 ? json() : json(*row.b / *row.a);
            entry["verdict"] = verdictName(row.judgement->verdict);
            entry["noise"] = row.judgement->noise;
            entry["repeats"] = {row.repeatsA.size(), row.repeatsB.size()};
        }
        metrics.push_back(std::move(entry));
    }
    for (const MemoryChange& step : comparison.phases) {
        phases.push_back(
            {{"phase", step.label}, {"peak_bytes_a", valueJson(step.a)}, {"peak_bytes_b", valueJson(step.b)}});
    }
    return {{"sentence", comparison.words.sentence},
            {"answers", comparison.words.answers.empty() ? json() : json(comparison.words.answers)},
            {"not_comparable", comparison.notComparable.empty() ? json() : json(comparison.notComparable)},
            {"spec", std::move(spec)},
            {"surroundings", std::move(surroundings)},
            {"metrics", std::move(metrics)},
            {"memory", {{"phases", std::move(phases)}}}};
}

using Rows = std::vector<std::vector<std::string>>;

/// Rows with a head, as GitHub shows them. The first column is text, the others are numbers.
std::string markdownText(const Rows& rows) {
    std::string text;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (const std::string& cell : rows[i]) {
            std::string safe;
            for (const char c : cell) {
                safe += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
            }
            text += "| " + safe + " ";
        }
        text += "|\n";
        if (i == 0) {
            for (std::size_t column = 0; column < rows[0].size(); ++column) {
                text += column == 0 ? "| --- " : "| ---: ";
            }
            text += "|\n";
        }
    }
    return text;
}

/// The change, its share and what it means; only values where all of both runs is incomparable.
std::vector<std::string> resultRow(const engine::ResultChange& row, bool comparable) {
    std::vector<std::string> cells{row.words, numberText(row.path, row.a), numberText(row.path, row.b)};
    if (!comparable) {
        return cells;
    }
    if (!row.judgement) {
        cells.insert(cells.end(), {"–", "–"});
        return cells;
    }
    const engine::ChangeJudgement& judgement = *row.judgement;
    std::string change = engine::changeText(row.path, judgement);
    if (judgement.verdict != engine::Verdict::Same && *row.a != 0) {
        const double share = judgement.change / std::abs(*row.a) * 100;
        change += fmt::format(" ({}{:.1f} %)", share < 0 ? "−" : "+", std::abs(share));
    }
    cells.push_back(std::move(change));
    // A band of rounding says nothing that a reader wants to know.
    const bool spread = judgement.fromRepeats && judgement.noise > 1e-3 * std::abs(*row.a);
    cells.push_back(std::string(verdictName(judgement.verdict)) +
                    (spread ? fmt::format(", ±{}", numberText(row.path, judgement.noise)) : ""));
    return cells;
}

/// Command lines are long; --json has all of them.
std::string shortened(const std::string& text) {
    constexpr std::size_t kReadable = 60;
    std::size_t end = std::min(text.size(), kReadable);
    while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
        --end; // not inside a character
    }
    return end < text.size() ? text.substr(0, end) + "…" : text;
}

std::string comparisonText(const RunComparison& comparison, bool markdown) {
    const std::string a = fmt::format("A #{}", comparison.a.number), b = fmt::format("B #{}", comparison.b.number);
    const auto table = [&](const Rows& rows) { return markdown ? markdownText(rows) : engine::tableText(rows); };
    const bool comparable = !comparison.notComparable.starts_with('#');
    std::string text = markdown ? fmt::format("**{}**", comparison.words.sentence) : comparison.words.sentence;
    text += "\n";
    for (const std::string& line : {comparison.words.other, comparison.words.answers,
                                    comparable ? comparison.notComparable : std::string(), comparison.losses}) {
        text += line.empty() ? "" : (markdown ? "\n" : "") + line + "\n";
    }
    Rows spec{{"set differently", a, b}}, surroundings{{"measured surroundings", a, b}};
    for (const auto& row : comparison.spec) {
        spec.push_back({row.key, row.a, row.b});
    }
    for (const auto& row : comparison.surroundings) {
        surroundings.push_back({row.words, shortened(row.a), shortened(row.b)});
    }
    text += "\n" + (spec.size() > 1 ? table(spec) : "The settings are the same.\n");
    if (surroundings.size() > 1) {
        text += "\n" + table(surroundings);
    }
    Rows results{{"result", a, b}};
    if (comparable) {
        results.front().insert(results.front().end(), {"B − A", "verdict"});
    }
    for (const engine::ResultChange& row : comparison.results) {
        if (row.a.value_or(0) != 0 || row.b.value_or(0) != 0) {
            results.push_back(resultRow(row, comparable));
        }
    }
    text += "\n" + table(results);
    if (!comparison.phases.empty()) {
        Rows memory{{"peak of the phase", a, b}};
        for (const MemoryChange& step : comparison.phases) {
            memory.push_back({step.label, numberText("peak_bytes", step.a), numberText("peak_bytes", step.b)});
        }
        text += "\n" + table(memory);
    }
    return text;
}

struct CompareText {
    std::vector<std::string> runs, conditions;
    bool markdown = false;
};

std::vector<ConditionResult> checkConditions(const CompareText& words, const RunComparison& comparison) {
    std::vector<ConditionResult> results;
    if (!words.conditions.empty() && comparison.notComparable.starts_with('#')) {
        throw base::BadInput("--fail-if: " + comparison.notComparable + " Name runs of the same work");
    }
    results.reserve(words.conditions.size());
    for (const std::string& text : words.conditions) {
        results.push_back(
            checkCondition(parseCondition(text, comparison.results), comparison.a, comparison.b, comparison.results));
    }
    return results;
}

int compareAndPrint(const CompareText& words, const GlobalOptions& options) {
    const std::vector<RunReference> pair = references(words.runs);
    const auto first = SessionFile::open(pair[0].file, OpenMode::ReadOnly);
    const auto second = SessionFile::open(pair[1].file, OpenMode::ReadOnly);
    const sessions::RunId a = resolveRun(*first, pair[0].run);
    const sessions::RunId b = resolveRun(*second, pair[1].run);
    if (a == b && pair[0].file == pair[1].file) {
        throw base::BadInput(fmt::format("{}: run {} is no baseline of itself; name two runs", pair[0].file, a));
    }
    const RunComparison comparison = compareRuns(*first, a, *second, b);
    const std::vector<ConditionResult> conditions = checkConditions(words, comparison);
    if (options.json) {
        json result = comparisonJson(comparison);
        result["a"] = {{"file", pair[0].file}, {"run", a}, {"name", first->run(a).name}};
        result["b"] = {{"file", pair[1].file}, {"run", b}, {"name", second->run(b).name}};
        if (!conditions.empty()) {
            json rows = json::array();
            for (const ConditionResult& row : conditions) {
                rows.push_back({{"condition", row.condition},
                                {"fails", row.holds},
                                {"inside_noise", row.noise},
                                {"sentence", row.sentence}});
            }
            result["conditions"] = std::move(rows);
        }
        printJson(result);
    } else {
        std::string text = comparisonText(comparison, words.markdown);
        for (std::size_t i = 0; i < conditions.size(); ++i) {
            text += (i == 0 ? "\n" : "") + std::string(words.markdown ? "- " : "") + conditions[i].sentence + "\n";
        }
        printOut(text);
    }
    return std::ranges::any_of(conditions, &ConditionResult::holds) ? 1 : 0;
}

} // namespace

void addSessionCompare(CLI::App& session, CommandLine& line) {
    CLI::App* command =
        addCommand(session, "compare", "What differs between two runs: settings, surroundings, results, memory",
                   "vitrine session compare runs.vitrine 2 3 --fail-if 'peak_bytes>+2%'");
    const auto words = std::make_shared<CompareText>();
    command
        ->add_option("runs", words->runs,
                     "FILE (its last two runs), FILE RUN RUN, FILE FILE (the last of each) or FILE RUN FILE RUN")
        ->type_name("FILE|RUN")
        ->required();
    command
        ->add_option("--fail-if", words->conditions,
                     "End with exit code 1 when a result changed by more from A to B: 'peak_bytes>+2%', "
                     "'decode_tokens_per_second<-3%', 'peak_bytes>+100MiB', 'load_seconds>+0.5'. Changes inside the "
                     "noise of repeats pass. May be given several times")
        ->type_name("CONDITION")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->add_flag("--markdown", words->markdown, "Write tables as GitHub shows them in a pull request");
    command->callback(
        [&line, words] { line.action = [&line, words] { return compareAndPrint(*words, line.options); }; });
}

} // namespace vitrine::app
