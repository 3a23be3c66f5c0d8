// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What one load holds over time, by part of the model or by category, with the instant at which it is loaded.

#include "ui/models/load/load_summary.h"
#include "ui/widgets/timeline/lane.h"
#include "ui/widgets/timeline/stack_painter.h"

namespace vitrine::ui {

using LoadSidePtr = std::shared_ptr<const LoadSide>;

/// The lane's picture: the stack, the line "Loaded 0.40 s" and the peak where it is above what stays.
QImage paintLoad(const LoadSide& side, LoadGrouping grouping, const AxisMap& axis, std::uint64_t top,
                 const PlotFrame& frame, const ThemeTokens& theme);

class LoadLane final : public Lane {
    Q_OBJECT

public:
    LoadLane(const QString& title, TimeCursor* time, QWidget* parent);

    void setSide(LoadSidePtr side);
    void setGrouping(LoadGrouping grouping);
    void setTop(std::uint64_t bytes); ///< one scale for both lanes
    QString spoken() const override;

protected:
    QImage paint(const PlotFrame& frame) override;
    void paintOver(QPainter& painter, const PlotFrame& frame) override;

private:
    LoadSidePtr side_;
    LoadGrouping grouping_ = LoadGrouping::Part;
    std::uint64_t top_ = 1;
};

} // namespace vitrine::ui
