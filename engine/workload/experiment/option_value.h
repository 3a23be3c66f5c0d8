// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Values of options: from a command line's text or an experiment's JSON to one canonical JSON form, and back to text.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

/// The canonical form of an experiment's value. Throws BadInput "NAME: KEY: what"; an empty name is left out.
nlohmann::json canonicalValue(const OptionSpec& option, const nlohmann::json& value, const std::string& name);

/// The same from command-line text.
nlohmann::json valueFromText(const OptionSpec& option, std::string_view text, const std::string& name);

/// A value as the command line writes it.
std::string valueText(const nlohmann::json& value);

/// Throws BadInput "NAME: KEY: missing; WHAT" where a text option is unset or empty.
void requireOption(const Experiment& experiment, const std::string& name, std::string_view key, std::string_view what);

/// Throws BadInput "NAME: KEY: what".
[[noreturn]] void failOption(const std::string& name, std::string_view key, const std::string& what);

} // namespace vitrine::engine
