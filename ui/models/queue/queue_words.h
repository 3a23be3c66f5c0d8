// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The sentences, rows and plots of the queue page. Pure functions over a queue and the clock.

#include <QString>
#include <QStringList>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/workload/sweep/run_queue.h"
#include "engine/workload/sweep/sweep_table.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::ui {

QString spanText(double seconds);         ///< "16 min 06 s", "1 h 05 min", "53 s"
QString clockText(std::int64_t unixMs);   ///< "14:21"
QString numberText(const std::string& v); ///< "2e−4": a value with a minus sign of text
QString runText(std::int64_t number);     ///< "#38"
/// How far behind the best, with the direction of worse: "▲ +0.031" of losses, "▼ −0.031" of rewards; "=".
QString behindText(double behind, bool rewards);

/// The sweep that the page shows: that of the running one, else the newest; empty: there is none.
std::string shownSweep(const engine::RunQueue& queue);

/// The large sentence in rich text: what is best, or what runs.
QString queueSentence(const engine::RunQueue& queue);
/// "7 of 12 runs of the sweep are done. #38 runs, 6 wait, .."
QString queueFacts(const engine::RunQueue& queue, std::int64_t nowMs);
/// "1 running, 6 waiting, 1 held back"
QString queueCounts(const engine::RunQueue& queue);

/// The sweep's runs: number, values, loss above the best or reward below it, steps, state.
FlatTreePtr sweepTree(const engine::RunQueue& queue, const std::string& sweep);
/// The whole queue as plain rows: the twin of the page.
FlatTreePtr queueTree(const engine::RunQueue& queue, std::int64_t nowMs);

/// A block of the plan: when a run runs and how much memory it takes.
struct PlanBlock {
    enum class Kind : std::uint8_t { Done, Rule, Failed, Running, Waiting };
    std::int64_t number = 0;
    Kind kind = Kind::Done;
    std::int64_t beginMs = 0, endMs = 0;
    bool known = true;         ///< false: its time is not known
    double peak = 0, held = 0; ///< GiB; `held`: of a failed run, the budget's part of it
    QString words;
};
struct QueuePlan {
    std::vector<PlanBlock> blocks, heldBack; ///< those held back have no place on the clock
    std::int64_t nowMs = 0, beginMs = 0, endMs = 0;
    double budget = 0, top = 0; ///< GiB
    bool paused = false;
};
QueuePlan queuePlan(const engine::RunQueue& queue, std::int64_t nowMs);

/// A run of the sweep as both plots draw it.
struct SweepCurve {
    std::int64_t number = 0;
    engine::QueueState state = engine::QueueState::Waiting;
    int place = 0;               ///< of its value on the axis
    int series = 0;              ///< of its line
    std::optional<double> value; ///< loss or reward
    std::int64_t step = 0;
    bool best = false;
    std::vector<engine::QueueEvaluation> points;
};
struct SweepPicture {
    QStringList values, series; ///< of the axis; names of the lines
    QString axis;
    std::vector<SweepCurve> curves;
    std::vector<engine::QueueEvaluation> best; ///< at each step
    std::optional<engine::StopRule> rule;
    bool evaluated = false;
    bool rewards = false; ///< values are rewards, and higher is better
    std::int64_t steps = 0;
};
SweepPicture sweepPicture(const engine::RunQueue& queue, const std::string& sweep);

} // namespace vitrine::ui
