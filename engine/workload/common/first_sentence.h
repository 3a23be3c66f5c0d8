// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The sentence that a result as text begins with: what a reader wants to know first.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

/// With the end of its line; empty where the text says it by itself. `metrics` is a JSON object.
std::string firstSentence(const Experiment& experiment, const nlohmann::json& metrics);
/// The same of a load, which has a result for each kind of weights. `metrics` has them as "variants".
std::string variantsSentence(const Experiment& experiment, const nlohmann::json& metrics);

} // namespace vitrine::engine
