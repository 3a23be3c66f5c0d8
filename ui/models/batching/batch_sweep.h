// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Throughput and latency against the number of slots, from the metrics of all batch runs of a session that replay one
// trace with one model. Pure functions; any thread.

#include <QString>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::ui {

struct SweepPoint {
    sessions::RunId run = 0;
    std::int32_t slotCount = 0;
    double tokensPerSecond = 0;
    double tpot = 0; ///< seconds, of SweepSeries' share; below 0: not known
    double ttft = 0;
};

/// Runs that differ in their slots alone.
struct SweepSeries {
    QString name;                   ///< "continuous", "static, prefill-first"
    std::vector<SweepPoint> points; ///< by slots; of equal slots the newest run
    bool hasA = false, hasB = false;
};

struct Sweep {
    std::vector<SweepSeries> series; ///< that of A first, then that of B
    QString share;                   ///< "p95": of the latencies
    std::size_t points() const;
};

/// Runs of the same trace and model as A (else B).
Sweep batchSweep(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b);
FlatTreePtr sweepTable(const Sweep& sweep);

} // namespace vitrine::ui
