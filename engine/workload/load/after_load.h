// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How well a loaded model answers: what a load measures where the experiment has a prompt.

#include <nlohmann/json_fwd.hpp>

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Answers the experiment's prompt with each variant of a load and notes in it how fast ("after_load"); with two
/// variants that computed values, metrics["agreement"] says how close their greedy tokens and the prompt's logits are.
/// Nothing without a prompt.
void measureAfterLoad(const Run& run, const ModelSource& source, nlohmann::json& variants);

} // namespace vitrine::engine
