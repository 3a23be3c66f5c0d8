// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The option `exact`: rollouts and training give a token the same log-probability, to the bit. Every op makes each row
// as if it were alone (kernels::DeviceFeatures::exactRows), both sides use the same weights and the same ops, and each
// answer has its prompt for itself, as it had it when it was sampled.

#include <string>

#include "engine/model/model.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/rl/rl_numbers.h"

namespace vitrine::engine {

/// Throws BadInput that names an option with which the two sides could not be equal.
void checkExact(const Experiment& experiment, const std::string& name);
/// Throws Unsupported for a model whose sampled keys are not those of a whole answer.
void checkExactModel(const Experiment& experiment, const Model& model);
/// Warns where an exact run's sampler and trainer differ in a step whose answers are all of one version of the weights:
/// a kernel of this device then does not keep its promise.
void sayIfInexact(const Experiment& experiment, std::int64_t step, const RlStep& numbers);
/// Whether answers pass the model with one copy of their prompt.
bool sharesPrompts(const Experiment& experiment);

} // namespace vitrine::engine
