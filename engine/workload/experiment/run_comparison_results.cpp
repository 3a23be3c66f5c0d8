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

/// The numbers of a run by path, with prefill as it is compared.
std::map<std::string, double> comparedNumbers(const ComparedRun& run) {
    std::map<std::string, double> numbers = base::numbersByPath(run.metrics);
    const auto prefill = numbers.find(std::string(result::kPrefillSeconds.key));
    const auto compiling = numbers.find(std::string(result::kPrefillCompileSeconds.key));
    if (prefill != numbers.end() && compiling != numbers.end()) {
        prefill->second = std::max(0.0, prefill->second - std::max(0.0, compiling->second));
    }
    return numbers;
}

using NumbersOfRuns = std::vector<std::map<std::string, double>>;

bool isSame(const ComparedRun& a, const ComparedRun& b) {
    return a.number == b.number && a.metrics == b.metrics;
}

/// The run itself first, then its repeats. The run that it is compared with is none of them, even where its settings
/// are the same: else no change of such a pair could be more than noise.
NumbersOfRuns withRepeats(const ComparedRun& run, const ComparedRun& partner, std::span<const ComparedRun> all) {
    NumbersOfRuns out{comparedNumbers(run)};
    for (const ComparedRun& other : all) {
        if (!isSame(run, other) && !isSame(partner, other) && areRepeats(run, other)) {
            out.push_back(comparedNumbers(other));
        }
    }
    return out;
}

std::vector<double> valuesOf(const NumbersOfRuns& runs, const std::string& path) {
    std::vector<double> values;
    for (const auto& numbers : runs) {
        if (const auto found = numbers.find(path); found != numbers.end()) {
            values.push_back(found->second);
        }
    }
    return values;
}

} // namespace

Judgement judge(std::string_view path, double a, double b, std::span<const double> repeatsA,
                std::span<const double> repeatsB, double clockShare) {
    constexpr double kPage = 4096, kUsual = 0.03, kRounding = 1e-9;
    const ResultField* field = findResult(path);
    Judgement out;
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
    using namespace result;
    const ResultField* field = findResult(path);
    static constexpr std::array kGrowing{&kKvBytes,     &kKvPageBytes,     &kKvPageBytesByGroup,    &kDecodeSeconds,
                                         &kDecodeSteps, &kGeneratedTokens, &kRooflineContextTokens, &kE2e};
    return field != nullptr &&
           std::ranges::any_of(kGrowing, [&](const ResultField* growing) { return growing->key == field->key; });
}

std::vector<ResultChange> compareResults(const ComparedRun& a, const ComparedRun& b, std::span<const ComparedRun> all) {
    const NumbersOfRuns left = withRepeats(a, b, all), right = withRepeats(b, a, all);
    std::vector<std::string> paths;
    for (const auto* numbers : {&left.front(), &right.front()}) {
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
        ResultChange row{path, resultWords(path), {}, {}, valuesOf(left, path), valuesOf(right, path), {}};
        const auto x = left.front().find(path), y = right.front().find(path);
        row.a = x == left.front().end() ? std::nullopt : std::optional(x->second);
        row.b = y == right.front().end() ? std::nullopt : std::optional(y->second);
        if (row.a && row.b) {
            row.judgement = judge(path, *row.a, *row.b, row.repeatsA, row.repeatsB, clocks);
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

std::string changeText(std::string_view path, const Judgement& judgement) {
    return judgement.verdict == Verdict::Same
               ? "="
               : (judgement.change < 0 ? "▼ " : "▲ ") + signedValueText(path, judgement.change);
}

} // namespace vitrine::engine
