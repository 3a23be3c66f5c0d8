// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One track of a trace as a lane. The selected scope and all that it launched stand in accent frames; one span may be
// chosen.

#include "ui/widgets/timeline/lane.h"
#include "ui/widgets/timeline/trace_painter.h"

namespace vitrine::ui {

class TraceLane final : public Lane {
    Q_OBJECT

public:
    TraceLane(const QString& title, TimeCursor* time, QWidget* parent);

    void setTrace(KernelTracePtr trace, std::size_t track, TimelinePtr timeline);
    const TraceTrack* track() const;
    std::size_t trackIndex() const { return input_.track; }
    /// The scope whose spans are framed; 0: none.
    void setLit(std::uint64_t scope);
    void setChosen(std::optional<TracePlace> place);
    std::optional<TracePlace> chosen() const { return chosen_; }
    const TracePicture& drawn() const { return picture_; }
    std::optional<TracePlace> pointedAt() const { return pointed_; }
    const TraceSpan& span(TracePlace place) const;

    /// Of a span that the axis shows, in the lane's coordinates; nothing when it lies outside or the lane is collapsed.
    std::optional<QRectF> spanRect(TracePlace place) const;
    QString spoken() const override;
    /// "expert_matmul, 15.9 µs from 2.601 s, ExpertMlp of layer 11"
    QString words(TracePlace place) const;
    bool step(int direction) override;

signals:
    void chosenByUser(); ///< chosen() is new
    void pointed();      ///< pointedAt() is new

protected:
    QImage paint(const PlotFrame& frame) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;
    void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) override;
    void doubleClickedAt(QPointF position) override;
    void hoveredAt(std::optional<QPointF> position) override;
    bool event(QEvent* event) override;

private:
    const TraceHit* hitAt(QPointF position) const;
    void choose(TracePlace place);
    TraceInput input_;
    TracePicture picture_;
    std::uint64_t lit_ = 0;
    std::optional<TracePlace> chosen_, pointed_;
};

} // namespace vitrine::ui
