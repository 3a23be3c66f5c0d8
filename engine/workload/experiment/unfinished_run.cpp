// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/unfinished_run.h"

#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_values.h"
#include "base/units.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {
namespace {

using UnfinishedJson = nlohmann::json;

std::string howItEnded(const ComparedRun& run) {
    if (run.outOfMemory) {
        return "ran out of memory";
    }
    if (run.status == "cancelled") {
        return "was stopped";
    }
    if (run.status == "failed") {
        return "failed";
    }
    if (run.status == "interrupted") {
        return "was interrupted";
    }
    return run.status == "running" ? "is still running" : "did not come to its end";
}

std::string doneOf(std::int64_t done, std::int64_t all, std::string_view what) {
    return fmt::format(" after {} of {} {}", base::formatGrouped(done), base::formatGrouped(all), what);
}

std::optional<std::int64_t> wholeOf(const UnfinishedJson& object, const ResultField& field) {
    const auto count = countOf(object, field);
    return count ? std::optional(static_cast<std::int64_t>(*count)) : std::nullopt;
}

/// Prompt tokens of all requests of a run.
std::int64_t promptOfAll(const UnfinishedJson& metrics) {
    std::int64_t tokens = 0;
    for (const UnfinishedJson& request : rowsOf(metrics, result::kRequests)) {
        tokens += wholeOf(request, result::kPromptTokens).value_or(0);
    }
    return tokens > 0 ? tokens : wholeOf(metrics, result::kPromptTokens).value_or(0);
}

/// " after 24,576 of 65,536 prompt tokens": how much of the work was done; empty where that was not recorded.
std::string whereItEnded(const UnfinishedJson& spec, const UnfinishedJson& metrics) {
    const std::int64_t prompt = promptOfAll(metrics);
    if (const auto read = wholeOf(metrics, result::kPrefilledTokens); read && *read < prompt) {
        return doneOf(*read, prompt, "prompt tokens");
    }
    const auto made = wholeOf(metrics, result::kGeneratedTokens);
    const auto asked = base::integerAt(spec, "max_new_tokens");
    if (made && *made > 0 && asked && rowsOf(metrics, result::kRequests).empty()) {
        return doneOf(*made, *asked, "new tokens");
    }
    if (made && *made == 0 && prompt > 0) {
        return fmt::format(" while it read its prompt of {} tokens", base::formatGrouped(prompt));
    }
    const auto finished = wholeOf(metrics, result::kFinishedRequests), requests = wholeOf(metrics, result::kRequests);
    if (finished && requests) {
        return doneOf(*finished, *requests, "requests");
    }
    const auto steps = base::integerAt(spec, "steps");
    if (const auto trained = static_cast<std::int64_t>(rowsOf(metrics, result::kLosses).size()); trained > 0 && steps) {
        return doneOf(trained, *steps, "steps");
    }
    return {};
}

/// " (scratch of 2.00 GiB found no room)", " (the file ended early)"; empty where nothing is known.
std::string whyItEnded(const ComparedRun& run, const UnfinishedJson& metrics) {
    const UnfinishedJson* error = valueOf(metrics, result::kError);
    if (error == nullptr || run.status == "cancelled") {
        return {};
    }
    const std::string what = base::textAt(*error, "what");
    const auto requested = base::bytesAt(*error, "requested_bytes");
    if (run.outOfMemory && !what.empty() && requested && *requested > 0) {
        return fmt::format(" ({} of {} found no room)", what, base::formatBytes(*requested));
    }
    std::string message = base::textAt(*error, "message");
    while (message.ends_with('.')) {
        message.pop_back();
    }
    return message.empty() || run.outOfMemory ? std::string() : fmt::format(" ({})", message);
}

/// Decoding begins when all prompts are read.
bool readItsPrompts(const ComparedRun& run) {
    return run.done || countOf(base::parsedObject(run.metrics), result::kDecodeSteps).value_or(0) > 0;
}

} // namespace

std::string unfinishedWords(const ComparedRun& run) {
    if (run.done) {
        return {};
    }
    const UnfinishedJson metrics = base::parsedObject(run.metrics);
    return howItEnded(run) + whereItEnded(base::parsedObject(run.spec), metrics) + whyItEnded(run, metrics);
}

std::string unfinishedFate(const ComparedRun& a, const ComparedRun& b) {
    const auto fate = [](const ComparedRun& run, const ComparedRun& other) {
        return !run.done ? unfinishedWords(run) : other.outOfMemory ? "did not" : "came to its end";
    };
    const std::string left = "A " + fate(a, b), right = "B " + fate(b, a);
    return a.done ? right + ", " + left : left + ", " + right;
}

std::string partOfWorkSentence(const ComparedRun& a, const ComparedRun& b) {
    if (a.done && b.done) {
        return {};
    }
    return a.done || b.done ? fmt::format("{} did a part of its work, so times and rates of that are no gain or loss.",
                                          a.done ? 'B' : 'A')
                            : "Both did a part of their work, so its times and rates are no gain or loss.";
}

bool isOfWholeWork(const ComparedRun& a, const ComparedRun& b, std::string_view path, double valueA, double valueB) {
    if (a.done && b.done) {
        return true;
    }
    if (path == result::kPeakBytes.key) {
        return a.done ? valueB > valueA : b.done && valueA > valueB;
    }
    // A run that goes on reports its load when it is done; nothing of it is missing.
    if (path == result::kLoadSeconds.key) {
        return true;
    }
    const bool prefill = path == result::kPrefillSeconds.key || path == result::kPrefillCompileSeconds.key;
    return prefill && readItsPrompts(a) && readItsPrompts(b);
}

} // namespace vitrine::engine
