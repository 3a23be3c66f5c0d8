// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The total over the phases of a step that failed, as a line over that of the step before: phase stands over phase, and
// in each time runs evenly.

#include <QWidget>
#include <functional>

#include "ui/models/memory/oom_summary.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

class PhasePlot final : public QWidget {
    Q_OBJECT

public:
    explicit PhasePlot(QWidget* parent);
    /// Hides itself when there is no step to compare with.
    void setFailure(TimelinePtr timeline, const OomSummary& facts);
    QSize sizeHint() const override { return {280, 150}; }
    QSize minimumSizeHint() const override { return {200, 120}; }

    const std::vector<profiler::PhasePair>& phases() const { return phases_; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    std::uint64_t lowestValue() const;
    QPointF drawTotals(QPainter& painter, const QRectF& plot, const std::function<double(double)>& yOf) const;
    void drawAsked(QPainter& painter, const QPointF& lastNow, double held, double asked) const;
    void drawPhaseNames(QPainter& painter, const QRectF& plot) const;
    TimelinePtr timeline_;
    std::vector<profiler::PhasePair> phases_;
    OomSummary facts_;
    QString stepNow_, stepBefore_;
};

} // namespace vitrine::ui
