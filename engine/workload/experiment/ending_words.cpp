// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/ending_words.h"

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

struct Ending {
    std::string_view reason; ///< as in finish_reason
    std::string_view many;   ///< after the number of requests
};
constexpr std::array<Ending, 8> kEndings{{{"stop_token", "at a stop token"},
                                          {"stop_text", "at a stop text"},
                                          {"length", "at the limit of new tokens"},
                                          {"context", "at the end of the model's context"},
                                          {"cancelled", "when the run was stopped"},
                                          {"out_of_memory", "out of memory"},
                                          {"failed", "with an error"},
                                          {"unfinished", "unfinished"}}};

std::string wordsOfMany(const Json& counts) {
    std::string words;
    for (const Ending& ending : kEndings) {
        const auto count = counts.find(ending.reason);
        if (count != counts.end() && count->is_number_unsigned() && count->get<std::uint64_t>() > 0) {
            words += fmt::format("{}{} {}", words.empty() ? "ended: " : ", ",
                                 base::formatGrouped(count->get<std::uint64_t>()), ending.many);
        }
    }
    return words;
}

} // namespace

std::string endingWords(const Json& metrics, const Experiment& experiment) {
    const Json* counts = valueOf(metrics, result::kFinishReasons);
    if (counts != nullptr && counts->is_object()) {
        return wordsOfMany(*counts);
    }
    const Json* requests = valueOf(metrics, result::kRequests);
    const std::string reason = textOf(metrics, result::kFinishReason);
    if (requests != nullptr || reason.empty()) {
        return {};
    }
    if (reason == "stop_token") {
        return "ended at a stop token";
    }
    if (reason == "stop_text") {
        return "ended at a stop text";
    }
    const auto made = countOf(metrics, result::kGeneratedTokens);
    if (!made || !experiment.has("max_new_tokens") || (reason != "length" && reason != "context")) {
        return {};
    }
    const auto limit = static_cast<std::uint64_t>(experiment.integer("max_new_tokens"));
    // Sessions of the first versions say "length" of both.
    if (reason == "context" || *made < limit) {
        const auto context = countOf(metrics, result::kKvCacheContextLimit).value_or(0);
        return fmt::format("ended at the end of the model's context{}, after {} of {} new tokens",
                           context > 0 ? fmt::format(" of {} tokens", base::formatGrouped(context)) : "",
                           base::formatGrouped(*made), base::formatGrouped(limit));
    }
    return fmt::format("ended at the limit of {} new token{}", base::formatGrouped(limit), limit == 1 ? "" : "s");
}

} // namespace vitrine::engine
