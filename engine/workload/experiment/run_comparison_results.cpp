// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The part of run_comparison.h that is about results: their changes and their noise.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/run_comparison.h"
#include "engine/workload/experiment/unfinished_run.h"

namespace vitrine::engine {
namespace {

bool isTime(const ResultField* field) {
    if (field == nullptr) {
        return false;
    }
    switch (field->unit) {
    case ResultUnit::Seconds:
    case ResultUnit::Milliseconds:
    case ResultUnit::BytesPerSecond:
    case ResultUnit::GigabytesPerSecond:
    case ResultUnit::TokensPerSecond:
    case ResultUnit::TeraflopsPerSecond:
        return true;
    default:
        return field->key == result::kRooflineRatio.key;
    }
}

double spreadOf(std::span<const double> values) {
    if (values.size() < 2) {
        return 0;
    }
    const auto [low, high] = std::ranges::minmax_element(values);
    return *high - *low;
}

/// The values of a run's results by path. A run that measured several times (option repeat) has several.
struct ValuesOfRun {
    std::map<std::string, double> numbers; ///< what the run reports, of several times their median
    std::map<std::string, std::vector<double>> repeats;
};

double withoutCompiling(double prefill, double compiling) {
    return std::max(0.0, prefill - std::max(0.0, compiling));
}

std::map<std::string, std::vector<double>> repeatsWithin(const ComparedRun& run) {
    std::map<std::string, std::vector<double>> repeats;
    const nlohmann::json metrics = base::parsedObject(run.metrics);
    const nlohmann::json* lists = valueOf(metrics, result::kRepeats);
    if (lists == nullptr || !lists->is_object()) {
        return repeats;
    }
    for (const auto& [path, list] : lists->items()) {
        for (const nlohmann::json& value : list) {
            if (value.is_number()) {
                repeats[path].push_back(value.get<double>());
            }
        }
    }
    return repeats;
}

/// With prefill as it is compared.
ValuesOfRun comparedValues(const ComparedRun& run) {
    ValuesOfRun values{base::numbersByPath(run.metrics), repeatsWithin(run)};
    const std::string read(result::kPrefillSeconds.key), compiled(result::kPrefillCompileSeconds.key);
    const auto prefill = values.numbers.find(read), compiling = values.numbers.find(compiled);
    if (prefill != values.numbers.end() && compiling != values.numbers.end()) {
        prefill->second = withoutCompiling(prefill->second, compiling->second);
    }
    const auto times = values.repeats.find(read), waits = values.repeats.find(compiled);
    if (times != values.repeats.end() && waits != values.repeats.end() &&
        times->second.size() == waits->second.size()) {
        std::ranges::transform(times->second, waits->second, times->second.begin(), withoutCompiling);
    }
    return values;
}

using ValuesOfRuns = std::vector<ValuesOfRun>;

bool isSame(const ComparedRun& a, const ComparedRun& b) {
    return a.number == b.number && a.metrics == b.metrics;
}

/// The run itself first, then its repeats. The run that it is compared with is none of them, even where its settings
/// are the same: else no change of such a pair could be more than noise.
ValuesOfRuns withRepeats(const ComparedRun& run, const ComparedRun& partner, std::span<const ComparedRun> all) {
    ValuesOfRuns out{comparedValues(run)};
    for (const ComparedRun& other : all) {
        if (!isSame(run, other) && !isSame(partner, other) && areRepeats(run, other)) {
            out.push_back(comparedValues(other));
        }
    }
    return out;
}

/// Each run counts with all that it measured.
std::vector<double> valuesOf(const ValuesOfRuns& runs, const std::string& path) {
    std::vector<double> values;
    for (const ValuesOfRun& run : runs) {
        const auto single = run.repeats.find(path);
        if (single != run.repeats.end() && single->second.size() > 1) {
            values.insert(values.end(), single->second.begin(), single->second.end());
        } else if (const auto found = run.numbers.find(path); found != run.numbers.end()) {
            values.push_back(found->second);
        }
    }
    return values;
}

} // namespace

ChangeJudgement judge(std::string_view path, double a, double b, std::span<const double> repeatsA,
                      std::span<const double> repeatsB, double clockShare) {
    constexpr double kPage = 4096, kUsual = 0.03, kRounding = 1e-9;
    const ResultField* field = findResult(path);
    ChangeJudgement out;
    out.change = b - a;
    out.fromRepeats = repeatsA.size() > 1 || repeatsB.size() > 1;
    out.noise = std::max({spreadOf(repeatsA), spreadOf(repeatsB), kRounding * std::max(std::abs(a), std::abs(b))});
    if (field != nullptr && field->unit == ResultUnit::Bytes) {
        out.noise = std::max(out.noise, kPage);
    }
    if (isTime(field)) {
        out.noise = std::max({out.noise, out.fromRepeats ? 0 : kUsual * std::abs(a), clockShare * std::abs(a)});
    }
    if (std::abs(out.change) <= out.noise) {
        return out;
    }
    const Better better = field == nullptr ? Better::Neither : field->better;
    out.verdict = better == Better::Neither                      ? Verdict::Differs
                  : (out.change < 0) == (better == Better::Less) ? Verdict::Better
                                                                 : Verdict::Worse;
    return out;
}

bool growsWithTokens(std::string_view path) {
    const ResultField* field = findResult(path);
    static constexpr std::array kGrowing{
        &result::kKvBytes,     &result::kKvPageBytes,     &result::kKvPageBytesByGroup,    &result::kDecodeSeconds,
        &result::kDecodeSteps, &result::kGeneratedTokens, &result::kRooflineContextTokens, &result::kE2e};
    return field != nullptr &&
           std::ranges::any_of(kGrowing, [&](const ResultField* growing) { return growing->key == field->key; });
}

std::vector<ResultChange> compareResults(const ComparedRun& a, const ComparedRun& b, std::span<const ComparedRun> all) {
    const ValuesOfRuns leftRuns = withRepeats(a, b, all), rightRuns = withRepeats(b, a, all);
    const auto &left = leftRuns.front().numbers, &right = rightRuns.front().numbers;
    std::vector<std::string> paths;
    for (const auto* numbers : {&left, &right}) {
        for (const auto& [path, value] : *numbers) {
            if (isComparable(path) && std::ranges::find(paths, path) == paths.end()) {
                paths.push_back(path);
            }
        }
    }
    std::ranges::sort(paths);
    std::ranges::stable_sort(paths, {}, [](const std::string& path) { return resultRank(path); });
    const double clocks = clockShare(a, b);
    std::vector<ResultChange> out;
    for (const std::string& path : paths) {
        ResultChange row{path, resultWords(path), {}, {}, valuesOf(leftRuns, path), valuesOf(rightRuns, path), {}};
        const auto x = left.find(path), y = right.find(path);
        row.a = x == left.end() ? std::nullopt : std::optional(x->second);
        row.b = y == right.end() ? std::nullopt : std::optional(y->second);
        if (row.a && row.b) {
            row.judgement = judge(path, *row.a, *row.b, row.repeatsA, row.repeatsB, clocks);
            if (row.judgement->verdict != Verdict::Same && !isOfWholeWork(a, b, path, *row.a, *row.b)) {
                row.judgement->verdict = Verdict::Differs;
            }
        }
        out.push_back(std::move(row));
    }
    return out;
}

std::string signedValueText(std::string_view path, double value) {
    // Whole numbers come back from JSON as doubles; they are written without digits after the point.
    const double size = std::abs(value);
    const bool whole = size < 1e15 && size == std::floor(size);
    const std::string text =
        resultValueText(path, whole ? nlohmann::json(static_cast<std::int64_t>(size)) : nlohmann::json(size));
    return (value < 0 ? "−" : "+") + text;
}

std::string changeText(std::string_view path, const ChangeJudgement& judgement) {
    return judgement.verdict == Verdict::Same
               ? "="
               : (judgement.change < 0 ? "▼ " : "▲ ") + signedValueText(path, judgement.change);
}

} // namespace vitrine::engine
