// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Traces of requests: which prompts arrive when and how much they ask for. The same trace replays under every mode.
//
// A file has one JSON object on each line:
//   id                 text or number, unique; unset: the number of the row, from 0
//   arrival            seconds from the start, unset: 0; rows may stand in any order
//   tokens | prompt | prompt_length   ids, text, or how many arbitrary tokens: exactly one of them
//   max_new_tokens     unset: the experiment's
//   temperature, top_k, top_p, min_p, repetition_penalty, seed   unset: the experiment's
//   stop               list of texts; stop_tokens: list of ids that end the answer instead of the model's own
// Other keys are errors that name them. Empty lines are skipped.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

struct TraceRow {
    std::string id;
    bool idIsNumber = false; ///< as the file writes it
    double arrival = 0;
    std::vector<std::int32_t> tokens;
    std::optional<std::string> prompt;
    std::int64_t promptLength = 0; ///< of arbitrary tokens; 0: tokens or prompt hold the prompt
    std::int64_t maxNewTokens = 0; ///< 0: unset
    std::optional<double> temperature, topP, minP, repetitionPenalty;
    std::optional<std::int64_t> topK, seed;
    std::vector<std::string> stop;
    std::optional<std::vector<std::int32_t>> stopTokens;
    std::string place; ///< "FILE: line 3", for errors

    nlohmann::json idJson() const;
};

inline constexpr std::int64_t kMostTraceRows = 1'000'000;
inline constexpr std::int64_t kMostTraceTokens = std::int64_t{1} << 26; ///< of all prompts of a trace together

/// Rows by arrival, equal ones as in the file. Throws BadInput "FILE: line N: FIELD: what".
std::vector<TraceRow> readRequestTrace(const std::string& path);
/// Writes a trace that reads back as it is. Throws BadInput when the file cannot be written.
void writeRequestTrace(const std::string& path, const std::vector<TraceRow>& rows);

/// A range of lengths, "16-256" or one number.
struct LengthRange {
    std::int64_t least = 1, most = 1;
};
/// Throws BadInput "NAME: what".
LengthRange parseLengthRange(std::string_view text, const std::string& name);

/// Traces made from a seed. Lengths of prompts are uniform in their range; those of answers are
///   fixed: the upper end; uniform and poisson: uniform in the range; long-tail: Pareto from the lower end with
///   exponent 1.1, capped at the upper end: many short answers and a few that are as long as allowed.
/// poisson spreads arrivals with `rate` requests per second (exponential gaps); the others follow it evenly, and all
/// are there at the start where the rate is 0. Answers run to their length whatever the model's end token.
struct TraceRecipe {
    std::string kind = "uniform"; ///< "fixed", "uniform", "poisson", "long-tail"
    std::int64_t requests = 100;
    LengthRange prompt{16, 256};
    LengthRange answer{16, 256};
    double rate = 0; ///< requests per second; poisson needs more than 0
    std::uint64_t seed = 0;
};
/// Throws BadInput for a recipe that cannot be, or that is larger than a trace may be.
std::vector<TraceRow> makeRequestTrace(const TraceRecipe& recipe);

} // namespace vitrine::engine
