// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Counters of a run over time: the mean of each column as a line, the span from its least to its largest value as a
// band.

#include "profiler/timeline/counter_index.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/timeline/lane.h"

namespace vitrine::ui {

class CounterLane final : public Lane {
    Q_OBJECT

public:
    enum class Unit : std::uint8_t { BytesPerSecond, Share, Watts, Celsius };
    struct Line {
        QString name;
        std::string counter; ///< in the run
    };

    CounterLane(const QString& title, Unit unit, std::vector<Line> lines, TimeCursor* time, QWidget* parent);

    void setTimeline(TimelinePtr timeline);
    /// The run has samples of at least one of the lines.
    bool recorded() const { return !present_.empty(); }
    /// The top of the scale, in the counters' unit.
    double top() const { return top_; }
    QString valueText(double value) const;
    QString spoken() const override;

protected:
    QImage paint(const PlotFrame& frame) override;

private:
    std::vector<profiler::CounterColumn> columns(const Line& line, int count) const;
    void showFacts();

    Unit unit_;
    std::vector<Line> lines_, present_;
    TimelinePtr timeline_;
    double top_ = 1;
};

/// The lanes of a GPU's counters: rates of its memory, how active it is, power and temperature.
std::vector<CounterLane*> makeGpuCounterLanes(TimeCursor* time, QWidget* parent);

} // namespace vitrine::ui
