// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/metric_names.h"

#include <QCoreApplication>
#include <array>
#include <utility>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr std::pair<std::string_view, const char*> kTitles[] = {
    {"peak_bytes", QT_TRANSLATE_NOOP("Metrics", "peak memory")},
    {"resident_bytes", QT_TRANSLATE_NOOP("Metrics", "weights resident")},
    {"kv_bytes", QT_TRANSLATE_NOOP("Metrics", "KV cache, tokens kept")},
    {"kv_page_bytes", QT_TRANSLATE_NOOP("Metrics", "KV cache, pages held")},
    {"load_seconds", QT_TRANSLATE_NOOP("Metrics", "load time")},
    {"prefill_seconds", QT_TRANSLATE_NOOP("Metrics", "prefill time")},
    {"decode_seconds", QT_TRANSLATE_NOOP("Metrics", "decode time")},
    {"decode_tokens_per_second", QT_TRANSLATE_NOOP("Metrics", "decode rate")},
    {"roofline.ratio", QT_TRANSLATE_NOOP("Metrics", "decode, part of the roofline")},
    {"roofline.bytes_per_token", QT_TRANSLATE_NOOP("Metrics", "bytes that a token reads")},
    {"roofline.bandwidth", QT_TRANSLATE_NOOP("Metrics", "bandwidth of the roofline")},
    {"step_seconds_estimate", QT_TRANSLATE_NOOP("Metrics", "decode step")},
    {"prompt_tokens", QT_TRANSLATE_NOOP("Metrics", "prompt tokens")},
    {"generated_tokens", QT_TRANSLATE_NOOP("Metrics", "generated tokens")},
    {"decode_steps", QT_TRANSLATE_NOOP("Metrics", "decode steps")},
    {"max_context", QT_TRANSLATE_NOOP("Metrics", "longest context that fits")},
    {"max_batch", QT_TRANSLATE_NOOP("Metrics", "largest batch that fits")},
    {"bytes_read", QT_TRANSLATE_NOOP("Metrics", "read from files")},
    {"budget_bytes", QT_TRANSLATE_NOOP("Metrics", "budget")},
    {"short_by_bytes", QT_TRANSLATE_NOOP("Metrics", "short by")},
    {"peak_reserved_bytes", QT_TRANSLATE_NOOP("Metrics", "peak reserved")},
    {"out_of_memory_steps", QT_TRANSLATE_NOOP("Metrics", "steps that did not fit memory")},
    {"failed_requests", QT_TRANSLATE_NOOP("Metrics", "requests ended by want of memory")},
    {"dropped_parts", QT_TRANSLATE_NOOP("Metrics", "older parts deleted")},
    {"dropped_bytes", QT_TRANSLATE_NOOP("Metrics", "deleted with older parts")},
    {"host_peak_bytes", QT_TRANSLATE_NOOP("Metrics", "host memory, peak")},
};

constexpr std::pair<std::string_view, const char*> kGroups[] = {
    {"peak_by_category.", QT_TRANSLATE_NOOP("Metrics", "at the peak: %1")},
    {"max_by_category.", QT_TRANSLATE_NOOP("Metrics", "own maximum: %1")},
    {"roofline.parts.", QT_TRANSLATE_NOOP("Metrics", "a token reads: %1")},
    {"kv_page_bytes_by_group.", QT_TRANSLATE_NOOP("Metrics", "KV cache pages: %1")},
};

QString words(std::string_view text) {
    return textOf(text).replace(QLatin1Char('_'), QLatin1Char(' ')).replace(QLatin1Char('.'), QStringLiteral(", "));
}

} // namespace

QString metricTitle(const std::string& metric) {
    for (const auto& [name, title] : kTitles) {
        if (metric == name) {
            return QCoreApplication::translate("Metrics", title);
        }
    }
    for (const auto& [prefix, title] : kGroups) {
        if (metric.starts_with(prefix)) {
            return QCoreApplication::translate("Metrics", title)
                .arg(textOf(std::string_view(metric).substr(prefix.size())));
        }
    }
    return words(metric);
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

} // namespace vitrine::ui
