// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vitrine::engine {

class Experiment;

/// The result of a run that sampled its answers, for people: what became of the rewards, a table of some steps, where
/// time and memory went, and an answer. std::nullopt for plans and for answers that were given.
std::optional<std::string> rlText(const Experiment& experiment, const nlohmann::json& metrics);

/// What the whole run came to, in lines: "60 steps, judged by task sums, ..", "evaluation: ..", "time: ..", "peak
/// memory:
/// ..". None for a run that sampled no answers.
std::vector<std::string> rlFacts(const nlohmann::json& metrics);
/// The table of some steps: a head, and a row of texts for each of them.
std::vector<std::vector<std::string>> rlStepRows(const nlohmann::json& metrics);

} // namespace vitrine::engine
