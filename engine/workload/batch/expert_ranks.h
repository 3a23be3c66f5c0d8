// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The option `expert_ranks` of plans: the experts of a model are divided among devices, and each device has all other
// weights and requests of its own. The plan is of one of them: it holds its share of the experts, computes as many rows
// as it sends away, and waits for the exchange of rows before and after the experts (DeviceLinks).

#include <string>

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Throws BadInput where no plan can be made of it.
void checkExpertRanks(const Experiment& experiment, const std::string& name);
/// openSource(), with the experts of one device.
ModelSource openRankSource(const Run& run);

} // namespace vitrine::engine
