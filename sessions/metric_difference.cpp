// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/metric_difference.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sessions/run_info.h"

namespace vitrine::sessions {

namespace {

/// The name of a row of a table in the metrics: its own name where it has one, so that rows of two runs are compared
/// even where their order differs.
std::string rowLabel(const nlohmann::json& row, std::size_t index) {
    for (const char* key : {"name", "weights", "id"}) {
        if (row.is_object() && row.contains(key) && row[key].is_string()) {
            return row[key].get<std::string>();
        }
    }
    return std::to_string(index);
}

void flatten(const nlohmann::json& value, const std::string& name, std::map<std::string, double>& out) {
    const std::string prefix = name.empty() ? name : name + ".";
    if (value.is_number()) {
        out.emplace(name, value.get<double>());
    } else if (value.is_object()) {
        for (const auto& [key, member] : value.items()) {
            flatten(member, prefix + key, out);
        }
    } else if (value.is_array()) {
        for (std::size_t i = 0; i < value.size(); ++i) {
            // Lists of numbers are data (token ids, losses), not metrics.
            if (value[i].is_object()) {
                flatten(value[i], prefix + rowLabel(value[i], i), out);
            }
        }
    }
}

std::map<std::string, double> numbers(const std::string& metricsJson) {
    std::map<std::string, double> result;
    flatten(nlohmann::json::parse(metricsJson, nullptr, false), {}, result);
    return result;
}

} // namespace

std::vector<MetricDifference> compareMetrics(const RunInfo& a, const RunInfo& b) {
    const std::map<std::string, double> left = numbers(a.metricsJson);
    const std::map<std::string, double> right = numbers(b.metricsJson);
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
