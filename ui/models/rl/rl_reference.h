// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <optional>
#include <vector>

#include "sessions/run_info.h"

namespace vitrine::ui {

/// What a run's log-probability difference is compared with: that of a run of the same model whose sampler computes
/// with the weights that train, which is what rounding alone makes.
struct RlReference {
    sessions::RunId run = 0;
    double difference = 0; ///< the median of its steps, above 0
};

/// The newest such run beside `run`; nothing where there is none, or where `run` is one itself. Pure; any thread.
std::optional<RlReference> rlReference(const std::vector<sessions::RunInfo>& runs, const sessions::RunInfo& run);

} // namespace vitrine::ui
