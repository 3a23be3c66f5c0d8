// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/first_sentence.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/json_values.h"
#include "base/units.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {

namespace {

using nlohmann::json;

/// What a category of memory depends on most.
struct CategoryChange {
    std::string_view category, words, change;
};
constexpr std::array<CategoryChange, 8> kCategoryChanges = {{
    {"weights", "weights", "weights of fewer bits"},
    {"kv_cache", "the KV cache", "a shorter context or a smaller kv_dtype"},
    {"activations", "activations", "a smaller batch or shorter rows"},
    {"logits", "logits", "a smaller batch or shorter rows"},
    {"workspace", "workspace", "a smaller batch or shorter rows"},
    {"gradients", "gradients", "fewer trained parameters"},
    {"optimizer", "the optimizer's state", "another optimizer or fewer trained parameters"},
    {"block_mask", "the block mask", "a shorter context"},
}};

std::string fieldWords(const json& metrics, const ResultField& field) {
    const json* value = valueOf(metrics, field);
    return value == nullptr ? std::string() : resultValueText(field.key, *value);
}

std::optional<std::uint64_t> neededBytes(const json& metrics) {
    return countOf(metrics,
                   metrics.contains(result::kPeakReservedBytes.key) ? result::kPeakReservedBytes : result::kPeakBytes);
}

/// "it needs 3.0 MiB of 4.0 MiB, so 1.0 MiB stay free"; empty where one of them is not known.
std::string roomWords(const json& metrics, bool fits) {
    const auto needed = neededBytes(metrics);
    const auto budget = countOf(metrics, result::kBudgetBytes);
    if (!needed || !budget) {
        return {};
    }
    const std::uint64_t apart =
        fits ? *budget - std::min(*needed, *budget)
             : countOf(metrics, result::kShortByBytes).value_or(*needed - std::min(*needed, *budget));
    return fmt::format("it needs {} of {}, so {} {}", base::formatBytes(*needed), base::formatBytes(*budget),
                       base::formatBytes(apart), fits ? "stay free" : "are missing");
}

/// "; the largest part is weights (12.82 GiB), so weights of fewer bits would change it first"; empty where the parts
/// are not known.
std::string firstChangeWords(const json& metrics) {
    const auto parts = metrics.find("peak_by_category");
    if (parts == metrics.end() || !parts->is_object()) {
        return {};
    }
    const CategoryChange* largest = nullptr;
    std::uint64_t most = 0;
    for (const CategoryChange& one : kCategoryChanges) {
        const std::uint64_t bytes = base::bytesAt(*parts, std::string(one.category).c_str()).value_or(0);
        if (bytes > most) {
            most = bytes;
            largest = &one;
        }
    }
    return largest == nullptr ? std::string()
                              : fmt::format("; the largest part is {} ({}), so {} would change it first",
                                            largest->words, base::formatBytes(most), largest->change);
}

/// "It fits: ...": by how much, and what would change it.
std::string planSentence(const json& metrics, bool fits) {
    const std::string room = roomWords(metrics, fits);
    return fmt::format("{}{}{}{}.\n", fits ? "It fits" : "It does not fit", room.empty() ? "" : ": ", room,
                       fits ? firstChangeWords(metrics) : "; what would fit stands at the end");
}

/// "Logits of 4 tokens were written to x in 13 ms: it needs .."
std::string logitsSentence(const json& metrics) {
    const json shape = metrics.value("shape", json::array());
    std::int64_t tokens = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
        tokens *= shape[i].is_number_integer() ? shape[i].get<std::int64_t>() : 0;
    }
    const std::string room = roomWords(metrics, true);
    return fmt::format("The logits of {} {} were written to {} in {}{}{}{}.\n", base::formatGrouped(tokens),
                       tokens == 1 ? "token" : "tokens", fieldWords(metrics, result::kOutput),
                       fieldWords(metrics, result::kSeconds), room.empty() ? "" : ": ", room,
                       room.empty() ? "" : firstChangeWords(metrics));
}

} // namespace

std::string firstSentence(const Experiment& experiment, const json& metrics) {
    const auto number = [&](const ResultField& field) { return fieldWords(metrics, field); };
    if (const auto fits = flagOf(metrics, result::kFits); fits && experiment.isPlan()) {
        return planSentence(metrics, *fits);
    }
    const json& losses = rowsOf(metrics, result::kLosses);
    if (!losses.empty() && losses.front().is_number() && losses.back().is_number()) {
        return fmt::format("Trained {} steps: the loss went from {:.4g} to {:.4g}, at {}.\n", losses.size(),
                           losses.front().get<double>(), losses.back().get<double>(), number(result::kTokensPerSecond));
    }
    if (metrics.contains(result::kFinishedRequests.key) && metrics.contains(result::kRequests.key)) {
        return fmt::format("{} of {} requests were finished in {}: {} tokens, {}.\n", number(result::kFinishedRequests),
                           number(result::kRequests), number(result::kSeconds), number(result::kGeneratedTokens),
                           number(result::kTokensPerSecond));
    }
    if (metrics.contains(result::kFiles.key) && metrics.contains(result::kBytes.key)) {
        return fmt::format("{} were written to {} in {}.\n", number(result::kBytes), experiment.text("output"),
                           number(result::kSeconds));
    }
    if (metrics.contains(result::kOutput.key) && metrics.contains("shape")) {
        return logitsSentence(metrics);
    }
    return {};
}

std::string variantsSentence(const Experiment& experiment, const json& metrics) {
    const json& variants = rowsOf(metrics, result::kVariants);
    std::string text;
    const json* largest = nullptr;
    bool allFit = true;
    for (const json& variant : variants) {
        const bool fits = flagOf(variant, result::kFits).value_or(true);
        const std::string name = variants.size() > 1 ? variant.value("weights", "") + " " : "";
        const std::string room = roomWords(variant, fits);
        const std::string what = experiment.isPlan()
                                     ? fmt::format("{}{}", name.empty() ? "it " : name, fits ? "fits" : "does not fit")
                                     : fmt::format("{}loaded in {}", name, fieldWords(variant, result::kSeconds));
        text += fmt::format("{}{}{}{}", text.empty() ? "" : "; ", what, room.empty() ? "" : ": ", room);
        const bool larger = largest == nullptr || neededBytes(variant).value_or(0) > neededBytes(*largest).value_or(0);
        largest = larger ? &variant : largest;
        allFit = allFit && fits;
    }
    if (largest == nullptr) {
        return {};
    }
    text += allFit ? firstChangeWords(*largest) : "; what would fit stands at the end";
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    return text + ".\n";
}

} // namespace vitrine::engine
