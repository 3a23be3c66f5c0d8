// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How well a loaded model answers: what a load measures where the experiment has a prompt.

#include <nlohmann/json_fwd.hpp>

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Answers the experiment's prompt with each variant of a load, and adds the speed to the variant as "after_load". With
/// two variants whose backends compute values, metrics["agreement"] says how close their greedy tokens and the logits
/// of the prompt are. Does nothing without a prompt.
void measureAfterLoad(const Run& run, const ModelSource& source, nlohmann::json& variants);

} // namespace vitrine::engine
