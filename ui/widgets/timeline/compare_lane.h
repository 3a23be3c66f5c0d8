// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The totals of two runs on their common axis: A solid, B dashed, the difference between them
// filled by the sign of B − A.

#include <functional>
#include <memory>

#include "profiler/analysis/timeline_align.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/timeline/lane.h"

namespace vitrine::ui {

struct CompareInput {
    std::vector<profiler::DifferenceColumn> columns; ///< one for each device pixel of the plot
    std::uint64_t top = 1;
};

QImage paintCompare(const CompareInput& input, const PlotFrame& frame, const ThemeTokens& theme);

class CompareLane final : public Lane {
    Q_OBJECT

public:
    CompareLane(const QString& title, TimeCursor* time, QWidget* parent);
    /// Times of the lane are positions of the alignment.
    void setRuns(TimelinePtr a, TimelinePtr b, std::shared_ptr<const profiler::Alignment> alignment);
    QString spoken() const override;

protected:
    QImage paint(const PlotFrame& frame) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;

private:
    TimelinePtr a_, b_;
    std::shared_ptr<const profiler::Alignment> alignment_;
    std::uint64_t top_ = 1;
};

} // namespace vitrine::ui
