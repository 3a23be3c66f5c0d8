// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace vitrine::engine {

class Experiment;

/// The result of a run that sampled its answers, for people: what became of the rewards, a table of some steps, where
/// time and memory went, and an answer. std::nullopt for plans and for answers that were given.
std::optional<std::string> rlText(const Experiment& experiment, const nlohmann::json& metrics);

} // namespace vitrine::engine
