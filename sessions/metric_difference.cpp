// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/metric_difference.h"

#include <algorithm>
#include <map>

#include "base/json_values.h"
#include "sessions/run_info.h"

namespace vitrine::sessions {

std::vector<MetricDifference> compareMetrics(const RunInfo& a, const RunInfo& b) {
    const std::map<std::string, double> left = base::numbersByPath(a.metricsJson);
    const std::map<std::string, double> right = base::numbersByPath(b.metricsJson);
    std::vector<MetricDifference> result;
    for (const auto& [name, value] : left) {
        const auto other = right.find(name);
        result.push_back({name, value, other == right.end() ? std::nullopt : std::optional(other->second)});
    }
    for (const auto& [name, value] : right) {
        if (!left.contains(name)) {
            result.push_back({name, std::nullopt, value});
        }
    }
    std::sort(result.begin(), result.end(), [](const auto& x, const auto& y) { return x.name < y.name; });
    return result;
}

} // namespace vitrine::sessions
