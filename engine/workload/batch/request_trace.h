// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Request traces: which prompts arrive at which time, and how many new tokens they want. The same trace can be replayed
// in every mode of batching.
//
// A file has one JSON object on each line:
//   id                 text or number, unique; unset: the number of the row, from 0
//   arrival            seconds from the start, unset: 0; rows may stand in any order
//   tokens | prompt | prompt_length   ids, text, or how many arbitrary tokens: exactly one of them
//   max_new_tokens     unset: the experiment's
//   temperature, top_k, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, seed
//                      unset: the experiment's; a row's own seed draws the same answer wherever the row stands
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
    bool idIsNumber = false; ///< the file writes the id as a number
    double arrival = 0;
    std::vector<std::int32_t> tokens;
    std::optional<std::string> prompt;
    std::int64_t promptLength = 0; ///< number of arbitrary tokens; 0: `tokens` or `prompt` holds the prompt
    std::int64_t maxNewTokens = 0; ///< 0: unset
    std::optional<double> temperature, topP, minP, repetitionPenalty, frequencyPenalty, presencePenalty;
    std::optional<std::int64_t> topK, seed;
    std::vector<std::string> stop;
    std::optional<std::vector<std::int32_t>> stopTokens;
    std::string place; ///< "FILE: line 3", for errors

    nlohmann::json idJson() const;
};

inline constexpr std::int64_t kMostTraceRows = 1'000'000;
inline constexpr std::int64_t kMostTraceTokens = std::int64_t{1}
                                                 << 26; ///< the most tokens of all prompts of a trace together

/// Reads a trace. The rows are sorted by arrival; rows with the same arrival keep the order of the file. Throws
/// BadInput "FILE: line N: FIELD: what".
std::vector<TraceRow> readRequestTrace(const std::string& path);
/// Writes a trace so that readRequestTrace() gives the same rows. Throws BadInput when the file cannot be written.
void writeRequestTrace(const std::string& path, const std::vector<TraceRow>& rows);

/// A range of lengths in tokens. As text it is "16-256" or one number.
struct LengthRange {
    std::int64_t least = 1, most = 1;
};
/// Throws BadInput "NAME: what".
LengthRange parseLengthRange(std::string_view text, const std::string& name);

/// Describes a trace that is made from a seed.
///
/// Lengths of prompts are uniformly distributed in their range. The kind says how lengths of answers are distributed:
/// - fixed: all have the upper end of the range.
/// - uniform, poisson: uniformly in the range.
/// - long-tail: Pareto from the lower end with exponent 1.1, capped at the upper end. There are many short answers and
/// a few that have the full length.
///
/// Kind poisson has exponential gaps between arrivals, with `rate` requests per second
/// on average. The other kinds have equal gaps; with rate 0 all requests arrive at the start. An answer always has its
/// full length, because the model's end token does not end it.
struct TraceRecipe {
    std::string kind = "uniform"; ///< "fixed", "uniform", "poisson", "long-tail"
    std::int64_t requests = 100;
    LengthRange prompt{16, 256};
    LengthRange answer{16, 256};
    double rate = 0; ///< requests per second; poisson needs more than 0
    std::uint64_t seed = 0;
};
/// Whether a trace of this name is made, and not read from a file.
bool isTraceRecipe(std::string_view trace);
/// Makes a trace. Throws BadInput for a recipe that contradicts itself or gives a larger trace than is allowed.
std::vector<TraceRow> makeRequestTrace(const TraceRecipe& recipe);

} // namespace vitrine::engine
