// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Converts values of options: text of the command line and JSON of an experiment become one canonical JSON form, and
// this form becomes text again.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

/// The canonical form of a value in an experiment's JSON. Throws BadInput "NAME: KEY: what", without "NAME: " when the
/// name is empty.
nlohmann::json canonicalValue(const OptionSpec& option, const nlohmann::json& value, const std::string& name);

/// The canonical form of a value that is given as command-line text.
nlohmann::json valueFromText(const OptionSpec& option, std::string_view text, const std::string& name);

/// A value as command-line text.
std::string valueText(const nlohmann::json& value);

/// Throws BadInput "NAME: KEY: missing; WHAT" when a text option is unset or empty.
void requireOption(const Experiment& experiment, const std::string& name, std::string_view key, std::string_view what);

/// Always throws BadInput "NAME: KEY: what".
[[noreturn]] void failOption(const std::string& name, std::string_view key, const std::string& what);

} // namespace vitrine::engine
