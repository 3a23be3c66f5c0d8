// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the screens need of a run's JSON values: read once, tolerant of missing and of unknown fields.

#include <QString>
#include <array>
#include <cstdint>
#include <optional>

#include "base/trace.h"
#include "sessions/session_file.h"

namespace vitrine::ui {

struct RunSummary {
    QString model;   ///< "synthetic:gpt-oss-20b" or a folder's name
    QString backend; ///< "cpu", "meta", "cuda"
    QString device;  ///< "H200" or the processor's name
    QString weights; ///< "quantized", "dequantized", empty
    QString dtype;
    bool virtualTime = false;
    std::optional<std::uint64_t> budget;
    std::optional<std::uint64_t> peak;
    std::optional<base::CategoryBytes> peakByCategory;
};

RunSummary runSummary(const sessions::RunInfo& run);

/// A number of metricsJson by its flattened name ("variants.0.seconds"); nothing when it is not there.
std::optional<double> runMetric(const sessions::RunInfo& run, std::string_view name);

/// Index of a category by its name in JSON; nothing for an unknown one.
std::optional<base::MemoryCategory> categoryNamed(std::string_view name);

} // namespace vitrine::ui
