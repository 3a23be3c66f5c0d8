// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/runs/run_conditions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string_view>

#include "base/edit_distance.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/workload/experiment/result_fields.h"
#include "engine/workload/experiment/unfinished_run.h"

namespace vitrine::app {

namespace {

constexpr const char* kExample = "write FIELD>+CHANGE or FIELD<-CHANGE, as in peak_bytes>+2% or load_seconds>+0.5";

[[noreturn]] void failCondition(const std::string& text, const std::string& what) {
    throw base::BadInput(fmt::format("--fail-if: {}: {}", text, what));
}

std::string trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(' ');
    return begin == std::string_view::npos ? std::string()
                                           : std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::string nearestPath(const std::string& path, const std::vector<engine::ResultChange>& results) {
    constexpr std::size_t kLongest = 64; // longer ones are no typing mistake
    std::string best;
    std::size_t bestDistance = std::numeric_limits<std::size_t>::max();
    const auto consider = [&](std::string_view known) {
        const std::size_t distance = base::editDistance(std::string_view(path).substr(0, kLongest), known);
        if (distance < bestDistance) {
            bestDistance = distance;
            best = known;
        }
    };
    for (const engine::ResultChange& row : results) {
        consider(row.path);
    }
    for (const std::string_view key : engine::comparableResults()) {
        consider(key);
    }
    return best;
}

/// A number without a sign: that stands before it.
double plainNumber(const std::string& text, const std::string& number) {
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (number.starts_with('-') || error != std::errc() || end != number.data() + number.size() ||
        !std::isfinite(value)) {
        failCondition(text, fmt::format("{} is no number; {}", number.empty() ? "the change" : number, kExample));
    }
    return value;
}

double limitOf(const std::string& text, const engine::ResultField* field, std::string amount) {
    if (field != nullptr && field->unit == engine::ResultUnit::Bytes) {
        return static_cast<double>(base::parseBytes(amount, fmt::format("--fail-if: {}", text)));
    }
    if (field != nullptr && field->unit == engine::ResultUnit::Seconds) {
        for (const auto& [suffix, scale] : {std::pair{"ms", 1e-3}, std::pair{"s", 1.0}}) {
            if (amount.ends_with(suffix)) {
                amount.resize(amount.size() - std::string_view(suffix).size());
                return plainNumber(text, trimmed(amount)) * scale;
            }
        }
    }
    return plainNumber(text, amount);
}

std::string valueText(const std::string& path, double value) {
    return (value < 0 ? "−" : "") + engine::signedValueText(path, std::abs(value)).substr(1);
}

/// "+3.1 %" or "+100 MiB"
std::string changeOf(const RunCondition& condition, double change, double a) {
    return condition.percent ? fmt::format("{}{:.1f} %", change < 0 ? "−" : "+", std::abs(change / a) * 100)
                             : engine::signedValueText(condition.path, change);
}

} // namespace

RunCondition parseCondition(const std::string& text, const std::vector<engine::ResultChange>& results) {
    RunCondition condition;
    condition.text = text;
    const std::size_t at = text.find_first_of("<>");
    if (at == std::string::npos) {
        failCondition(text, fmt::format("has no > or <; {}", kExample));
    }
    condition.path = trimmed(std::string_view(text).substr(0, at));
    condition.above = text[at] == '>';
    const engine::ResultField* field = engine::findResult(condition.path);
    const bool known = std::ranges::find(results, condition.path, &engine::ResultChange::path) != results.end() ||
                       (field != nullptr && engine::isComparable(condition.path));
    if (!known) {
        failCondition(text, fmt::format("{} is no result; the nearest known one is {}",
                                        condition.path.empty() ? "an empty name" : condition.path,
                                        nearestPath(condition.path, results)));
    }
    std::string amount = trimmed(std::string_view(text).substr(at + 1));
    if (amount.empty() || (amount[0] != '+' && amount[0] != '-')) {
        failCondition(text, fmt::format("the change needs its sign, + or -; {}", kExample));
    }
    const double sign = amount[0] == '-' ? -1 : 1;
    amount = trimmed(amount.substr(1));
    condition.percent = amount.ends_with('%');
    condition.limit = sign * (condition.percent ? plainNumber(text, trimmed(amount.substr(0, amount.size() - 1)))
                                                : limitOf(text, field, amount));
    return condition;
}

ConditionResult checkCondition(const RunCondition& condition, const engine::ComparedRun& a,
                               const engine::ComparedRun& b, const std::vector<engine::ResultChange>& results) {
    const auto row = std::ranges::find(results, condition.path, &engine::ResultChange::path);
    if (row == results.end() || !row->a || !row->b) {
        const bool lacksA = row == results.end() || !row->a;
        failCondition(condition.text, fmt::format("run #{} has no {}; name a result of both runs",
                                                  lacksA ? a.number : b.number, condition.path));
    }
    ConditionResult out;
    out.condition = condition.text;
    if (const auto stop = engine::earlyStop(a, b); stop && engine::growsWithTokens(condition.path)) {
        out.sentence = fmt::format("{}: not judged, {} stopped after {} of {} tokens", condition.text,
                                   stop->isA ? 'A' : 'B', stop->tokens, stop->of);
        return out;
    }
    if (!engine::isOfWholeWork(a, b, condition.path, *row->a, *row->b)) {
        const engine::ComparedRun& early = a.done ? b : a;
        failCondition(condition.text, fmt::format("run #{} {}, so its {} is that of a part of the work; name runs that "
                                                  "came to their end",
                                                  early.number, engine::unfinishedWords(early), condition.path));
    }
    if (condition.percent && *row->a == 0) {
        failCondition(condition.text,
                      fmt::format("it is 0 in run #{}, so a change in percent says nothing; give it in the unit of "
                                  "the field",
                                  a.number));
    }
    const double change = row->judgement->change;
    const double measure = condition.percent ? change / std::abs(*row->a) * 100 : change;
    const bool beyond = condition.above ? measure > condition.limit : measure < condition.limit;
    out.noise = beyond && row->judgement->fromRepeats && row->judgement->verdict == engine::Verdict::Same;
    out.holds = beyond && !out.noise;
    const std::string detail = fmt::format("{} ({} to {})", changeOf(condition, change, *row->a),
                                           valueText(condition.path, *row->a), valueText(condition.path, *row->b));
    out.sentence = out.noise ? fmt::format("{}: passes, {} is inside the noise of repeats, ±{}", condition.text, detail,
                                           valueText(condition.path, row->judgement->noise))
                             : fmt::format("{}: {}, {}", condition.text, out.holds ? "fails" : "passes", detail);
    return out;
}

} // namespace vitrine::app
