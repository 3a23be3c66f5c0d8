// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a row of the queue says: one run, runs of a sweep that are folded, or the line over what has ended.

#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/workload/sweep/run_queue.h"

namespace vitrine::ui {

struct QueueRow {
    enum class Kind : std::uint8_t { Run, Group, Fold };
    Kind kind = Kind::Run;
    std::int64_t number = 0; ///< of a group that of its first run
    engine::QueueState state = engine::QueueState::Waiting;
    std::vector<std::int64_t> members; ///< of a group

    QString run, name, sub;                   ///< "#38", "lr 4e−4, rank 8", "sweep support-lr, 8 of 12"
    QString stateText, stateSub;              ///< "running", "step 268 of 400"
    QString progress, progressSub;            ///< what it does or what holds it
    QString button;                           ///< "Use offload": of a run that a change makes fit
    bool why = false;                         ///< it has a reason that can be looked at
    double done = -1;                         ///< part of the steps that were made; below 0: no bar
    std::vector<double> course;               ///< of a running one, evaluations in order
    QString valueText;                        ///< "loss 1.506", "reward 0.412"
    double peak = 0, planned = 0, budget = 0; ///< bytes; 0: not known
    QString peakText, peakWord, plannedText;  ///< "23.20", "so far", "23.48"
    QString left, clock;
    bool over = false; ///< more was needed than the budget has
    bool unfolded = true;
};

/// Makes rows out of runs, with the clock that the queue gives.
class QueueRowMaker {
public:
    /// `queue` must outlive this.
    QueueRowMaker(const engine::RunQueue& queue, std::int64_t nowMs);

    QueueRow row(const engine::QueuedRun& run) const;
    /// Waiting runs of one sweep as one row.
    QueueRow group(const std::vector<const engine::QueuedRun*>& runs) const;
    static QueueRow fold(const std::vector<const engine::QueuedRun*>& ended, bool shown);

private:
    std::optional<engine::QueueTime> timeOf(std::int64_t number) const;
    void addClock(QueueRow& out, const engine::QueuedRun& run) const;
    void addRunning(QueueRow& out, const engine::QueuedRun& run) const;
    void addWaiting(QueueRow& out, const engine::QueuedRun& run) const;

    const engine::RunQueue& queue_;
    std::int64_t nowMs_;
    std::vector<engine::QueueTime> times_;
};

} // namespace vitrine::ui
