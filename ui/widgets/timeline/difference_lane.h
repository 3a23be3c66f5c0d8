// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// B − A of two runs on their common axis, by category: stacked from zero, what B has less of downwards, what it has
// more of upwards.

#include <memory>

#include "profiler/analysis/timeline_align.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/timeline/lane.h"

namespace vitrine::ui {

struct DifferenceInput {
    std::vector<profiler::DifferenceColumn> columns; ///< one for each device pixel of the plot
};

/// The largest sums of a column above and below zero, in bytes.
struct DifferenceSpan {
    double above = 0, below = 0;
};
DifferenceSpan differenceSpan(const std::vector<profiler::DifferenceColumn>& columns);

QImage paintDifference(const DifferenceInput& input, const PlotFrame& frame, const ThemeTokens& theme);

class DifferenceLane final : public Lane {
    Q_OBJECT

public:
    DifferenceLane(const QString& title, TimeCursor* time, QWidget* parent);
    /// Times of the lane are positions of the alignment.
    void setRuns(TimelinePtr a, TimelinePtr b, std::shared_ptr<const profiler::Alignment> alignment);
    QString spoken() const override;

protected:
    QImage paint(const PlotFrame& frame) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;

private:
    TimelinePtr a_, b_;
    std::shared_ptr<const profiler::Alignment> alignment_;
};

} // namespace vitrine::ui
