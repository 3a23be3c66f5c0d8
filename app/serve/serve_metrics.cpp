// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/serve_metrics.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace vitrine::app {
namespace {

std::string header(const std::string& name, const char* type, const char* help) {
    return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

std::string single(const std::string& name, const char* type, const char* help, std::int64_t value) {
    return header(name, type, help) + fmt::format("{} {}\n", name, value);
}

double secondsBetween(base::TimeNs from, base::TimeNs to) {
    return static_cast<double>(to - from) * 1e-9;
}

} // namespace

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::add(double value) {
    const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
    ++counts_[static_cast<std::size_t>(bucket)];
    sum_ += value;
}

std::string Histogram::lines(const std::string& name) const {
    std::string out;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < bounds_.size(); ++i) {
        sum += counts_[i];
        out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], sum);
    }
    sum += counts_.back();
    return out + fmt::format("{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, sum, name, sum_, name, sum);
}

ServeMetrics::ServeMetrics()
    : firstToken_({0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}),
      perToken_({0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5}),
      whole_({0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600}) {}

void ServeMetrics::answered(int status) {
    const std::lock_guard lock(mutex_);
    ++answers_[status];
}

void ServeMetrics::ended(const engine::BatchResult& result) {
    const std::lock_guard lock(mutex_);
    ++requests_[result.refusal.empty() ? std::string(engine::finishReasonName(result.result.finish)) : "refused"];
    promptTokens_ += result.result.promptTokens;
    sharedTokens_ += result.sharedTokens;
    if (result.firstToken < 0) {
        return;
    }
    firstToken_.add(secondsBetween(result.arrival, result.firstToken));
    if (result.end < 0) {
        return;
    }
    whole_.add(secondsBetween(result.arrival, result.end));
    if (const std::size_t tokens = result.result.ids.size(); tokens > 1) {
        perToken_.add(secondsBetween(result.firstToken, result.end) / static_cast<double>(tokens - 1));
    }
}

std::string ServeMetrics::text(const engine::ServeStatus& status, std::int64_t connections) const {
    const std::lock_guard lock(mutex_);
    std::string out = header("vitrine_http_responses_total", "counter", "Answers of HTTP by status.");
    for (const auto& [code, count] : answers_) {
        out += fmt::format("vitrine_http_responses_total{{status=\"{}\"}} {}\n", code, count);
    }
    out += header("vitrine_requests_total", "counter", "Requests that ended, by reason.");
    for (const auto& [reason, count] : requests_) {
        out += fmt::format("vitrine_requests_total{{reason=\"{}\"}} {}\n", reason, count);
    }
    out += single("vitrine_prompt_tokens_total", "counter", "Tokens of the prompts of ended requests.", promptTokens_);
    out += single("vitrine_shared_prompt_tokens_total", "counter",
                  "Tokens of prompts that were found in pages of other requests.", sharedTokens_);
    out += single("vitrine_generated_tokens_total", "counter", "Tokens that were generated.", status.generated);
    out += single("vitrine_out_of_memory_steps_total", "counter", "Steps that did not fit into memory.",
                  status.outOfMemorySteps);
    out += single("vitrine_requests_running", "gauge", "Requests that have a slot.", status.running);
    out += single("vitrine_requests_waiting", "gauge", "Requests that wait for a slot.", status.waiting);
    out += single("vitrine_connections", "gauge", "Connections of clients.", connections);
    out += single("vitrine_step_tokens", "gauge", "The most tokens of a step at present.", status.stepTokens);
    out += header("vitrine_kv_pages", "gauge", "Pages of the KV cache's pool by state.");
    for (const auto& [state, count] :
         {std::pair{"used", status.pages.used}, {"cached", status.pages.cached}, {"free", status.pages.free}}) {
        out += fmt::format("vitrine_kv_pages{{state=\"{}\"}} {}\n", state, count);
    }
    const auto add = [&out](const std::string& name, const char* help, const Histogram& histogram) {
        out += header(name, "histogram", help) + histogram.lines(name);
    };
    add("vitrine_time_to_first_token_seconds", "From the arrival of a request to its first token.", firstToken_);
    add("vitrine_time_per_output_token_seconds", "Between tokens after the first, the mean of each request.",
        perToken_);
    add("vitrine_request_seconds", "From the arrival of a request to its last token.", whole_);
    return out;
}

} // namespace vitrine::app
