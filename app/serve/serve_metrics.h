// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a server counts for GET /metrics, in Prometheus' text format. Any thread may call it.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/workload/serve/serve.h"

namespace vitrine::app {

/// Numbers of values up to each bound.
class Histogram {
public:
    explicit Histogram(std::vector<double> bounds);
    void add(double value);
    /// The lines of one histogram: buckets, sum, count.
    std::string lines(const std::string& name) const;

private:
    std::vector<double> bounds_;
    std::vector<std::int64_t> counts_; ///< one more: above the last bound
    double sum_ = 0;
};

class ServeMetrics {
public:
    ServeMetrics();
    /// An answer of HTTP with this status began.
    void answered(int status);
    /// A request ended or was refused.
    void ended(const engine::BatchResult& result);
    std::string text(const engine::ServeStatus& status, std::int64_t connections) const;

    static constexpr const char* kType = "text/plain; version=0.0.4; charset=utf-8";

private:
    mutable std::mutex mutex_; ///< guards what follows
    std::map<int, std::int64_t> answers_;
    std::map<std::string, std::int64_t, std::less<>> requests_; ///< by reason of their end
    std::int64_t promptTokens_ = 0, sharedTokens_ = 0;
    Histogram firstToken_, perToken_, whole_;
};

} // namespace vitrine::app
