// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kernels/counter_lanes.h"

#include <QObject>
#include <algorithm>
#include <utility>

#include "profiler/analysis/roofline_summary.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

namespace {

constexpr int kCounterHeight = 48;

} // namespace

CounterLanes::CounterLanes(TimeCursor* time, LaneStack* stack) : time_(time) {
    const std::pair<QString, std::vector<std::string>> counters[] = {
        {QObject::tr("DRAM read and write (dashed)"),
         {"gpu.dram_read_bytes_per_second", "gpu.dram_write_bytes_per_second"}},
        {QObject::tr("SM active"), {"gpu.sm_active"}},
        {QObject::tr("Tensor pipe"), {"gpu.tensor_active"}},
    };
    for (const auto& [title, names] : counters) {
        auto* lane = new CurveLane(title, time, stack);
        lane->setPlotHeight(kCounterHeight, 1);
        stack->addLane(lane);
        lanes_.push_back({lane, names});
    }
}

Lane* CounterLanes::first() const {
    return lanes_.front().lane;
}

void CounterLanes::show(const TimelinePtr& timeline, std::optional<TimeRange> work, double bytesPerSecond) {
    for (const CounterLane& lane : lanes_) {
        showLane(lane, timeline, work, bytesPerSecond);
    }
}

void CounterLanes::showLane(const CounterLane& shown, const TimelinePtr& timeline, std::optional<TimeRange> work,
                            double bytesPerSecond) {
    TimeRange range = time_->range();
    if (work && work->length() > 0) {
        range = {std::max(range.begin, work->begin), std::min(range.end, work->end)};
        if (timeline) {
            shown.lane->foldWhileEmpty(std::ranges::none_of(shown.counters, [&](const std::string& name) {
                const auto all = timeline->counters().columns(name, work->begin, work->end, 1);
                return !all.empty() && all.front().samples > 0;
            }));
        }
    }
    const std::vector<std::string> recorded = timeline ? timeline->counters().names() : std::vector<std::string>();
    const bool rate = shown.counters.size() > 1;
    const double unit = rate ? 1e9 : 0.01;
    const QString unitName = rate ? QStringLiteral("GB/s") : QStringLiteral("%");
    std::vector<Curve> curves;
    QStringList facts;
    for (std::size_t i = 0; timeline && i < shown.counters.size(); ++i) {
        const std::string& name = shown.counters[i];
        if (std::ranges::find(recorded, name) == recorded.end()) {
            continue;
        }
        Curve curve;
        curve.name = !rate ? shown.lane->title() : i == 0 ? QObject::tr("read") : QObject::tr("write");
        curve.dashed = i == 1;
        curve.values = [timeline, name, unit](const AxisMap& axis, int columns) {
            std::vector<std::optional<double>> values(static_cast<std::size_t>(columns));
            for (int x = 0; x < columns; ++x) {
                const base::TimeNs from = axis.time(static_cast<double>(x) / columns * axis.width());
                const base::TimeNs to = axis.time((x + 1.0) / columns * axis.width());
                const auto column = timeline->counters().columns(name, from, std::max(from + 1, to), 1);
                if (!column.empty() && column.front().known) {
                    values[static_cast<std::size_t>(x)] = column.front().mean / unit;
                }
            }
            return values;
        };
        curves.push_back(std::move(curve));
        const auto words = [&](double value) {
            return QString::number(value / unit, 'f', rate || value / unit >= 10 ? 0 : 1) + QStringLiteral("\u00A0") +
                   unitName;
        };
        if (range.end <= range.begin) {
            continue; // nothing of the work is in view
        }
        // From the first sample on: the value before it is one of the idle time.
        const auto samples = timeline->counters().samples(name);
        const auto first = std::ranges::lower_bound(samples, range.begin, {}, &std::pair<base::TimeNs, double>::first);
        if (first == samples.end() || first->first >= range.end) {
            continue;
        }
        const auto whole = timeline->counters().columns(name, first->first, range.end, 1);
        if (whole.empty() || !whole.front().known) {
            continue;
        }
        facts << QObject::tr("%1mean %2, most %3")
                     .arg(rate ? curves.back().name + QLatin1Char(' ') : QString(), words(whole.front().mean),
                          words(whole.front().largest));
    }
    // Also where this stretch has no sample: a lane that came and went with the zoom would move all others.
    shown.lane->setVisible(std::ranges::find(recorded, shown.counters.front()) != recorded.end());
    const double top = rate ? (bytesPerSecond > 0 ? bytesPerSecond : 5e12) / unit : 100;
    shown.lane->setTopText(rate ? textOf(profiler::bandwidthText(top * unit)) : QStringLiteral("100\u00A0%"));
    shown.lane->setFacts(facts.empty() ? QObject::tr("no samples of the work in view")
                                       : facts.join(QStringLiteral("   ")));
    shown.lane->setCurves(std::move(curves), top, false);
}

} // namespace vitrine::ui
