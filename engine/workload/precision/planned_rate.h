// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a model in another format would decode at, priced on Meta without any files of it.

#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "engine/model/model.h"
#include "engine/workload/precision/precision_format.h"

namespace vitrine::engine {

/// Tokens of context behind which the rate is priced, or the model's limit less one.
inline constexpr std::int64_t kPlannedContext = 4096;

/// Of one sequence, in tokens/s.
struct PlannedRate {
    double prefill = 0; ///< up to the context
    double decode = 0;  ///< behind it
};

/// What a device with these traits reaches. Nothing when `convert` could not write the model in
/// that format, so that nothing would run it. Throws Cancelled.
std::optional<PlannedRate> plannedRate(const ModelSource& source, const PrecisionFormat& format,
                                       const std::vector<std::string>& ignored, const kernels::DeviceTraits& traits,
                                       const ModelOptions& options, const KvCacheOptions& cache,
                                       const base::StopToken& stop);

} // namespace vitrine::engine
