// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Times of attention runs, and the experiment that measures them.

#include <QString>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "ui/models/mask_lab/mask_source.h"

namespace vitrine::ui {

struct MaskDirectionTimes {
    double measured = 0;        ///< milliseconds
    std::optional<double> full; ///< without the mask
    std::optional<double>
        predicted; ///< by the plan of the kernel; on a CPU of the full time by the share of computed blocks
    std::optional<double> tflops;
    /// 1 - measured / full; none without both.
    std::optional<double> saved() const;
};

struct MaskTimes {
    QString device, dtype;
    bool cpu = false, estimated = false; ///< estimated: on Meta
    MaskSizes sizes;                     ///< that were measured
    std::optional<double> sparsity;      ///< of blocks, at those sizes
    std::optional<MaskDirectionTimes> forward, backward;
    QString where() const; ///< "H200, bfloat16, 64 heads, D 64"
};

/// Of the metrics of a run of workload "attention"; none when it timed nothing.
std::optional<MaskTimes> maskTimes(const std::string& metricsJson);

/// Most FLOPs of one forward pass without a mask that are measured; the CPU is a reference, not a fast kernel.
inline constexpr double kMostGpuFlops = 4e14;
inline constexpr double kMostCpuFlops = 1.1e9;
/// The sizes with fewer heads, then shorter rows, until they fit. `said` receives what was made smaller; empty:
/// nothing.
MaskSizes measuredSizes(const MaskSizes& sizes, bool gpu, QString* said = nullptr);

/// Forward and backward, with the mask and without, at measuredSizes; medians of three.
nlohmann::json measureExperiment(const MaskSource& source, const std::string& mask, const std::string& score,
                                 const MaskSizes& sizes, const QString& backend, int device);

/// "0.97 ms", "32.9 ms", "1.20 s": of milliseconds.
QString millisecondsText(double milliseconds);

} // namespace vitrine::ui
