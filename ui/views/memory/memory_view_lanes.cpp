// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the lanes of the Memory view show besides the events themselves: budget, plan, free block, marks, legend.
#include <QCheckBox>
#include <algorithm>
#include <cmath>

#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/memory/oom_summary.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/memory/alive_panel.h"
#include "ui/views/memory/memory_view.h"
#include "ui/views/memory/plan_overlay.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kFindMarks = 500;

} // namespace

void MemoryView::updateBudget() {
    budget_.reset();
    if (timeline_) {
        budget_ = profiler::budgetAt(*timeline_, timeline_->end());
    }
    const sessions::RunInfo* run = context().document->run(run_);
    if (!budget_ && run != nullptr) {
        budget_ = runSummary(*run).budget;
    }
    budgetCheck_->setEnabled(budget_.has_value());
    budgetCheck_->setToolTip(budget_ ? exactBytesText(*budget_) : tr("This run had no memory budget"));
    const auto shown = budgetCheck_->isChecked() ? budget_ : std::nullopt;
    stackLane_->setBudget(shown);
    allocationLane_->setBudget(shown);
    freeLane_->setVisible(budget_.has_value());
}

void MemoryView::updateFreeLane() {
    if (!timeline_ || !budget_) {
        return;
    }
    // With a counter of the allocator the curve is what it measured; without one it is the budget minus what is held.
    const auto samples = timeline_->counters().samples("largest_free_bytes");
    const TimelinePtr timeline = timeline_;
    const std::uint64_t budget = *budget_;
    Curve curve;
    curve.name = tr("largest free block");
    if (samples.empty()) {
        curve.values = [timeline, budget](const AxisMap& axis, int columns) {
            std::vector<std::optional<double>> values;
            const StackModelPtr model = categoryStack(*timeline, axis, columns);
            for (const StackColumn& column : model->columns) {
                values.push_back(column.present
                                     ? std::optional(static_cast<double>(budget - std::min(budget, column.total)))
                                     : std::nullopt);
            }
            return values;
        };
    } else {
        curve.values = [samples](const AxisMap& axis, int columns) {
            std::vector<std::optional<double>> values(static_cast<std::size_t>(columns));
            std::size_t at = 0;
            std::optional<double> now;
            for (int i = 0; i < columns; ++i) {
                const base::TimeNs until = axis.time((i + 1.0) / columns * axis.width());
                std::optional<double> least = now;
                for (; at < samples.size() && samples[at].first < until; ++at) {
                    now = samples[at].second;
                    least = std::min(least.value_or(*now), *now);
                }
                values[static_cast<std::size_t>(i)] = least;
            }
            return values;
        };
    }
    freeLane_->setCurves({std::move(curve)}, static_cast<double>(budget), true);
    std::vector<base::TimeNs> failures;
    QString facts;
    for (const base::OutOfMemoryEvent& failure : timeline_->memory().outOfMemory()) {
        failures.push_back(failure.time);
        const double fragmentation = oomSummary(*timeline_, failures.size() - 1).fragmentation;
        facts = tr("%1 at the failure, fragmentation %2 %")
                    .arg(bytesText(failure.largestFree))
                    .arg(std::lround(fragmentation * 100));
    }
    if (facts.isEmpty()) {
        const profiler::MemoryColumn peak = timeline_->memory().peak(timeline_->begin(), timeline_->end() + 1);
        facts = tr("%1 at the peak").arg(peakText(budget - std::min(budget, peak.maxTotal), peak.incomplete));
    }
    freeLane_->setFailures(std::move(failures));
    freeLane_->setFacts(facts);
}

void MemoryView::updateMarks() {
    std::vector<TimeMark> marks;
    if (timeline_) {
        for (const base::OutOfMemoryEvent& failure : timeline_->memory().outOfMemory()) {
            marks.push_back({failure.time, TimeMark::Kind::Failure, tr("OOM %1").arg(instantText(failure.time))});
        }
        for (const base::GapEvent& gap : timeline_->gaps().all()) {
            marks.push_back({gap.begin, TimeMark::Kind::Loss,
                             tr("%1 records lost").arg(countText(static_cast<qint64>(gap.records))), gap.end});
        }
        for (const sessions::TimelineNote& note : notes_) {
            QString text = QString::fromStdString(note.body);
            marks.push_back({note.timeBegin, TimeMark::Kind::Note,
                             text.size() > 24 ? text.left(23) + QStringLiteral("…") : text, note.timeEnd, note.id});
        }
        for (std::size_t i = 0; i < std::min(found_.rows.size(), kFindMarks); ++i) {
            marks.push_back({timeline_->memory().allocations()[found_.rows[i]].born, TimeMark::Kind::Find, {}});
        }
    }
    lanes_->setMarks(marks);
}

void MemoryView::updateTable() {
    if (header()->tableShown() && timeline_) {
        tableModel_->setSource(timeline_, context().time->range());
    }
}

void MemoryView::updateLegend() {
    const StackModelPtr model = stackLane_->model();
    if (!model || !timeline_) {
        lanes_->legend()->setItems(tr("Nothing recorded"), {}, 0, 1);
        return;
    }
    const base::TimeNs at = alive_->shownTime();
    const std::uint64_t total = stackLane_->totalAt(at);
    const ByteGrid grid = byteGrid(std::max<std::uint64_t>(total, 4));
    const std::vector<std::uint64_t> values = stackLane_->valuesAt(at);
    std::vector<Legend::Item> items;
    for (std::size_t layer = 0; layer < model->layers.size(); ++layer) {
        Legend::Item item;
        item.layer = static_cast<int>(layer);
        item.name = model->layers[layer].name;
        item.style = layerStyle(model->layers[layer], themeTokens());
        item.bytes = layer < values.size() ? values[layer] : 0;
        item.present = item.bytes > 0;
        for (std::size_t c = 0; c < model->columns.size() && !item.present; ++c) {
            item.present = model->value(c, layer) > 0;
        }
        items.push_back(std::move(item));
    }
    const QString unit = QString::fromLatin1(grid.unitName);
    lanes_->legend()->setItems(context().time->cursor() ? tr("At cursor, %1").arg(unit) : tr("At peak, %1").arg(unit),
                               std::move(items), total, grid.unit);
}

void MemoryView::updatePlan() {
    const QString reason = plan_->whyNot();
    planCheck_->setEnabled(reason.isEmpty());
    const TimelinePtr plan = plan_->timeline();
    stackLane_->setPlan(plan);
    if (!reason.isEmpty()) {
        planCheck_->setToolTip(reason);
    } else if (planCheck_->isChecked() && !plan_->error().isEmpty()) {
        planCheck_->setToolTip(plan_->error());
        showError(plan_->error());
    } else if (plan_->waiting()) {
        planCheck_->setToolTip(tr("Planning this experiment on the Meta backend"));
    } else {
        planCheck_->setToolTip(tr("What the plan of this experiment expects, matched by phase"));
    }
}

} // namespace vitrine::ui
