// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The ruler of one of two runs on their common axis: it counts the run's own seconds, so its ticks stretch with the
// phases.

#include <memory>

#include "profiler/analysis/timeline_align.h"
#include "ui/widgets/timeline/time_strip.h"

namespace vitrine::ui {

class CompareRuler final : public TimeStrip {
    Q_OBJECT

public:
    CompareRuler(QChar letter, TimeCursor* time, QWidget* parent);
    /// Positions of the strip are those of the alignment; `end` is the run's last instant.
    void setRun(qint64 number, std::shared_ptr<const profiler::Alignment> alignment, base::TimeNs end);
    /// The run's time at a position of the axis; nothing where the run has nothing.
    std::optional<base::TimeNs> runTime(base::TimeNs position) const;
    QString spoken() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    bool isA() const { return letter_ == QLatin1Char('A'); }
    void paintTicks(QPainter& painter) const;

    QChar letter_;
    qint64 number_ = 0;
    std::shared_ptr<const profiler::Alignment> alignment_;
    base::TimeNs end_ = 0;
};

} // namespace vitrine::ui
