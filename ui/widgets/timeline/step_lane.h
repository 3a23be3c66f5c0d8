// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Memory by category over one step, with its peak marked, and perhaps the total of another step as a dashed line over
// it.

#include <functional>
#include <optional>
#include <vector>

#include "profiler/timeline/timeline_rows.h"
#include "ui/models/common/stack_model.h"
#include "ui/widgets/timeline/lane.h"
#include "ui/widgets/timeline/stack_painter.h"

namespace vitrine::ui {

/// Words at a place of the axis and a height.
struct LaneNote {
    base::TimeNs place = 0;
    std::uint64_t bytes = 0;
    QString text;
    bool other = false; ///< about the dashed line, in its colour
};

class StepLane final : public Lane {
    Q_OBJECT

public:
    using Maker = std::function<StackModelPtr(const AxisMap&, int columns)>;

    StepLane(const QString& title, TimeCursor* time, QWidget* parent);

    /// `note` stands in text3 after the title.
    void setNote(const QString& note);
    /// What is stacked, and what is drawn dashed over it; null: nothing.
    void setModels(Maker stack, Maker dashed = {});
    void setTop(std::uint64_t bytes);
    /// A dashed line; nothing: none. It is seen where the scale reaches it.
    void setBudget(std::optional<std::uint64_t> bytes);
    /// maxTime is a place of the axis.
    void setPeak(const std::optional<profiler::MemoryColumn>& peak);
    void setGuides(std::vector<base::TimeNs> guides);
    void setNotes(std::vector<LaneNote> notes);
    void setSpoken(std::function<QString()> words) { spoken_ = std::move(words); }
    QString spoken() const override { return spoken_ ? spoken_() : facts(); }
    ByteScale scale() const;

signals:
    void peakClicked();
    /// A double click, or Enter at the cursor.
    void placeOpened(qint64 place);

protected:
    QImage paint(const PlotFrame& frame) override;
    void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) override;
    void doubleClickedAt(QPointF position) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void paintDashed(QPainter& painter, const StackModel& model, const PlotFrame& frame, const ByteScale& scale) const;
    void paintNotes(QPainter& painter, const PlotFrame& frame, const ByteScale& scale) const;

    TextLabel* note_;
    Maker stack_, dashed_;
    std::uint64_t top_ = 1;
    std::optional<std::uint64_t> budget_;
    std::optional<profiler::MemoryColumn> peak_;
    std::vector<base::TimeNs> guides_;
    std::vector<LaneNote> notes_;
    std::function<QString()> spoken_;
};

} // namespace vitrine::ui
