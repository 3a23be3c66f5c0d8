// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The kernels of a run in numbers: the table of kernels, each against the device's ceilings, and the icicle of device
// time. Pure functions; any thread.

#include <QString>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/analysis/kernel_flame.h"
#include "profiler/analysis/kernel_table.h"
#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/time_cursor.h"

namespace vitrine::ui {

/// What the device of a run can do at most; 0: not known.
struct Ceilings {
    QString device; ///< "NVIDIA H200"
    QString dtype;  ///< whose FLOP rate counts: "bfloat16"
    double bytesPerSecond = 0, flopsPerSecond = 0;

    bool known() const { return bytesPerSecond > 0 && flopsPerSecond > 0; }
    /// Highest FLOP rate at this many FLOPs a byte.
    double flopsAt(double intensity) const { return std::min(flopsPerSecond, intensity * bytesPerSecond); }
    /// Shortest time for this work over the time it took; nothing when work or ceilings are not known.
    std::optional<double> share(std::uint64_t bytes, std::uint64_t flops, base::TimeNs time) const;
};
Ceilings ceilingsOf(const sessions::RunInfo& run);

/// A kernel (or an op of several kernels) whose work is known, on the roofline.
struct RooflineDot {
    QString name;
    QString words; ///< "expert_gemm_hopper: 102 FLOP/B, 612 TFLOP/s, 77.4 % of roofline"
    double intensity = 0, flopsPerSecond = 0;
    double time = 0; ///< share of the device's time
};

struct KernelStats {
    profiler::KernelTable table;
    Ceilings ceilings;
    std::vector<RooflineDot> dots; ///< at most one for a kernel
    TimeRange range;               ///< what was counted
    base::TimeNs ops = 0;          ///< time of the ops themselves, where no kernels were recorded
};
using KernelStatsPtr = std::shared_ptr<const KernelStats>;

KernelStatsPtr kernelStats(const profiler::RunTimeline& timeline, const Ceilings& ceilings, TimeRange range);

/// What one kernel did for all of its ops together; nothing when the name is not in the table.
std::optional<profiler::KernelRow> kernelNamed(const profiler::KernelTable& table, const std::string& name);

/// The columns of the kernel table.
enum KernelColumn {
    KernelName,
    KernelOp,
    KernelCalls,
    KernelTotal,
    KernelMean,
    KernelShare,
    KernelBytes,
    KernelFlops,
    KernelOfRoofline,
    KernelColumnCount
};

/// One row for each kernel and op whose name holds `filter` (any case). Rows have the kernel's number in the table,
/// from 1, as their key; the last row sums up what is shown.
FlatTreePtr kernelTree(const KernelStats& stats, const QString& filter);

QString flopRateText(double flopsPerSecond); ///< "612 TFLOP/s", "4.2 TFLOP/s", "–" for 0

/// The icicle as a table: name, time, share, calls.
FlatTreePtr flameTable(const profiler::FlameTree& flame);

} // namespace vitrine::ui
