// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// KV-cache bytes against cached tokens, as measured: from the counters "kv_tokens" and "kv_bytes.GROUP" (full,
// sliding).

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace vitrine::profiler {

class RunTimeline;

struct KvPoint {
    double tokens = 0;
    base::TimeNs time = 0;
    std::vector<double> bytes; ///< one for each group
};

struct KvCurve {
    std::vector<std::string> groups; ///< "full", "sliding"
    std::vector<KvPoint> points; ///< by time; one for each time at which tokens or bytes changed, without empty caches
                                 ///< at the end of a request
};

/// Empty when the run kept no KV cache. At most about `limit` points: the first and last and those where a group's
/// growth changes stay, others are thinned out evenly.
KvCurve kvCurve(const RunTimeline& timeline, std::size_t limit = 4096);

} // namespace vitrine::profiler
