// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Why the answers of a run ended, in words. The command line and the views say the same. Pure function; any thread.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

/// "ended at a stop token", "ended at the limit of 64 new tokens"; of several requests "ended: 3 at a stop token, 1 at
/// the limit of new tokens". Empty where it is not known, and where the one answer is not complete: the status of the
/// run says why.
std::string endingWords(const nlohmann::json& metrics, const Experiment& experiment);

} // namespace vitrine::engine
