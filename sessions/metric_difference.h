// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vitrine::sessions {

struct RunInfo;

/// Compares metrics of two runs: flattened numeric leaves of metricsJson, "peak_by_category.weights".
struct MetricDifference {
    std::string name;
    std::optional<double> a, b;
};
std::vector<MetricDifference> compareMetrics(const RunInfo& a, const RunInfo& b);

} // namespace vitrine::sessions
