// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the plan and the plots of the sweep draw.
#include <algorithm>
#include <cmath>

#include "engine/workload/sweep/sweep_table.h"
#include "ui/models/queue/queue_words.h"

namespace vitrine::ui {

namespace {

using engine::QueuedRun;
using engine::QueueState;

constexpr double kGib = 1024.0 * 1024 * 1024;

PlanBlock blockOf(const QueuedRun& run) {
    PlanBlock out;
    out.number = run.number;
    out.words = QString::fromStdString(run.name);
    const double planned = run.price ? static_cast<double>(run.price->peak) / kGib : 0;
    out.peak = run.peak > 0 ? static_cast<double>(run.peak) / kGib : planned;
    out.beginMs = run.startedMs;
    out.endMs = run.endedMs;
    switch (run.state) {
    case QueueState::Failed:
        out.kind = PlanBlock::Kind::Failed;
        out.held = run.price ? std::min(out.peak, static_cast<double>(run.price->budget) / kGib) : out.peak;
        break;
    case QueueState::EndedByRule:
        out.kind = PlanBlock::Kind::Rule;
        break;
    case QueueState::Running:
        out.kind = PlanBlock::Kind::Running;
        break;
    case QueueState::Finished:
    case QueueState::EndedByUser:
        break;
    default:
        out.kind = PlanBlock::Kind::Waiting;
    }
    return out;
}

int placeOf(const std::vector<std::string>& values, const std::string& value) {
    const auto found = std::ranges::find(values, value);
    return found == values.end() ? 0 : static_cast<int>(found - values.begin());
}

/// Names of lines: the values of every option after the first.
QString seriesName(const engine::SweepValues& values) {
    QStringList out;
    for (std::size_t i = 1; i < values.size(); ++i) {
        out << QString::fromStdString(values[i].first).replace(QLatin1Char('_'), QLatin1Char(' ')) + QLatin1Char(' ') +
                   numberText(values[i].second);
    }
    return out.join(QStringLiteral(", "));
}

/// At each step the best of all runs.
void addBest(SweepPicture& out, const std::vector<engine::QueueEvaluation>& points) {
    for (const engine::QueueEvaluation& point : points) {
        const auto same = std::ranges::find(out.best, point.step, &engine::QueueEvaluation::step);
        if (same == out.best.end()) {
            out.best.push_back(point);
        } else if (engine::behindBy(point.value, same->value, out.rewards) < 0) {
            same->value = point.value;
        }
    }
}

} // namespace

QueuePlan queuePlan(const engine::RunQueue& queue, std::int64_t nowMs) {
    QueuePlan out;
    out.nowMs = out.beginMs = out.endMs = nowMs;
    out.paused = queue.paused();
    const std::vector<engine::QueueTime> times = queue.clock(nowMs);
    constexpr std::int64_t kPast = std::int64_t{12} * 3600 * 1000; // what lies further back would hide what comes
    for (const QueuedRun& run : queue.runs()) {
        if (run.price && out.budget == 0) {
            out.budget = static_cast<double>(run.price->budget) / kGib;
        }
        PlanBlock block = blockOf(run);
        if (run.state == QueueState::DoesNotFit || run.state == QueueState::Paused) {
            out.heldBack.push_back(std::move(block));
            continue;
        }
        if (engine::hasEnded(run.state) && (run.startedMs == 0 || nowMs - run.endedMs > kPast)) {
            continue;
        }
        const auto time = std::ranges::find(times, run.number, &engine::QueueTime::number);
        if (time != times.end()) {
            block.beginMs = time->beginMs;
            block.endMs = std::max(time->endMs, block.kind == PlanBlock::Kind::Running ? nowMs : time->endMs);
            block.known = time->known;
        }
        out.beginMs = std::min(out.beginMs, block.beginMs);
        out.endMs = std::max(out.endMs, block.endMs);
        out.blocks.push_back(std::move(block));
    }
    double largest = out.budget;
    for (const auto* blocks : {&out.blocks, &out.heldBack}) {
        for (const PlanBlock& block : *blocks) {
            largest = std::max(largest, block.peak);
        }
    }
    const double grid = largest > 20 ? 20 : largest > 2 ? 2 : 0.25;
    out.top = std::max(std::ceil(largest / grid) * grid, grid);
    return out;
}

SweepPicture sweepPicture(const engine::RunQueue& queue, const std::string& sweep) {
    SweepPicture out;
    const auto plan = queue.sweeps().find(sweep);
    if (plan == queue.sweeps().end() || plan->second.options.empty()) {
        return out;
    }
    const engine::SweepOption& first = plan->second.options.front();
    out.axis = QString::fromStdString(first.key).replace(QLatin1Char('_'), QLatin1Char(' '));
    for (const std::string& value : first.values) {
        out.values << numberText(value);
    }
    out.rule = plan->second.rule;
    const engine::SweepTable table = engine::sweepTable(queue, sweep);
    out.evaluated = table.evaluated;
    out.rewards = table.rewards;
    for (const engine::SweepRow& row : table.rows) {
        const QueuedRun& run = *queue.find(row.number);
        SweepCurve curve{run.number, run.state, 0, 0, row.value, row.valueStep, row.best, run.evaluations};
        curve.place = run.values.empty() ? 0 : placeOf(first.values, run.values.front().second);
        out.steps = std::max({out.steps, run.step, run.steps});
        addBest(out, run.evaluations);
        out.curves.push_back(std::move(curve));
    }
    // Lines in the order of the plan, whatever the values are.
    engine::SweepPlan given = plan->second;
    given.order = engine::SweepOrder::AsGiven;
    for (const engine::SweepValues& values : engine::sweepCombinations(given)) {
        if (const QString name = seriesName(values); !out.series.contains(name)) {
            out.series << name;
        }
    }
    for (SweepCurve& curve : out.curves) {
        curve.series = static_cast<int>(out.series.indexOf(seriesName(queue.find(curve.number)->values)));
    }
    std::ranges::sort(out.best, {}, &engine::QueueEvaluation::step);
    return out;
}

} // namespace vitrine::ui
