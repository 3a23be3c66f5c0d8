// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/metric_names.h"

#include <array>
#include <utility>

namespace vitrine::profiler {

namespace {

constexpr std::pair<std::string_view, std::string_view> kTitles[] = {
    {"peak_bytes", "peak memory"},
    {"resident_bytes", "weights resident"},
    {"kv_bytes", "KV cache, tokens kept"},
    {"kv_page_bytes", "KV cache, pages held"},
    {"load_seconds", "load time"},
    {"prefill_seconds", "prefill time"},
    {"decode_seconds", "decode time"},
    {"decode_tokens_per_second", "decode rate"},
    {"roofline.ratio", "decode, part of the roofline"},
    {"roofline.bytes_per_token", "bytes that a token reads"},
    {"roofline.bandwidth", "bandwidth of the roofline"},
    {"step_seconds_estimate", "decode step"},
    {"prompt_tokens", "prompt tokens"},
    {"generated_tokens", "generated tokens"},
    {"decode_steps", "decode steps"},
    {"max_context", "longest context that fits"},
    {"max_batch", "largest batch that fits"},
    {"bytes_read", "read from files"},
    {"budget_bytes", "budget"},
    {"short_by_bytes", "short by"},
    {"peak_reserved_bytes", "peak reserved"},
    {"out_of_memory_steps", "steps that did not fit memory"},
    {"failed_requests", "requests ended by want of memory"},
    {"dropped_parts", "older parts deleted"},
    {"dropped_bytes", "deleted with older parts"},
    {"host_peak_bytes", "host memory, peak"},
    {"peak_at", "where the peak is"},
    {"checkpoints_on_device", "layer inputs without room on the host"},
};

constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"peak_by_category.", "at the peak: "},
    {"max_by_category.", "own maximum: "},
    {"roofline.parts.", "a token reads: "},
    {"kv_page_bytes_by_group.", "KV cache pages: "},
};

/// "decode rate" for "decode_rate", "a, b" for "a.b".
std::string spelled(std::string_view metric) {
    std::string text;
    for (const char c : metric) {
        text += c == '.' ? std::string(", ") : std::string(1, c == '_' ? ' ' : c);
    }
    return text;
}

} // namespace

std::string metricTitle(std::string_view metric) {
    for (const auto& [name, title] : kTitles) {
        if (metric == name) {
            return std::string(title);
        }
    }
    for (const auto& [prefix, title] : kGroups) {
        if (metric.starts_with(prefix)) {
            return std::string(title) + std::string(metric.substr(prefix.size()));
        }
    }
    return spelled(metric);
}

int metricRank(std::string_view metric) {
    int rank = 0;
    for (const auto& [name, title] : kTitles) {
        if (metric == name) {
            return rank;
        }
        ++rank;
    }
    rank += 1; // the names that this file does not know
    for (const auto& [prefix, title] : kGroups) {
        if (metric.starts_with(prefix)) {
            return rank + 1;
        }
        ++rank;
    }
    return static_cast<int>(std::size(kTitles));
}

} // namespace vitrine::profiler
