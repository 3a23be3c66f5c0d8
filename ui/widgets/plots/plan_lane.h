// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The plan of one machine: a block for each run, its width the time and its height the peak of memory, over the clock.
// What is held back stands at the right of the clock, because it has no time.

#include <vector>

#include "ui/models/queue/queue_words.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

class PlanLane final : public ItemPlot {
    Q_OBJECT

public:
    static constexpr int kRulerHeight = 20, kPlotHeight = 104;

    explicit PlanLane(QWidget* parent);
    void setPlan(QueuePlan plan);
    const QueuePlan& plan() const { return plan_; }
    /// The run whose block is framed; 0: none.
    void setChosen(std::int64_t number);

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override { return {400, kRulerHeight + kPlotHeight}; }
    std::int64_t numberOf(int item) const;
    QRectF blockRect(int item, const QSizeF& size) const;

protected:
    int itemCount() const override { return static_cast<int>(plan_.blocks.size() + plan_.heldBack.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    const PlanBlock& block(int item) const;
    double axisRight(const QSizeF& size) const;
    double x(std::int64_t ms, const QSizeF& size) const;
    static double y(double gib, double top, const QSizeF& size);
    void paintGrid(QPainter& painter, const QSizeF& size) const;
    void paintBlock(QPainter& painter, int item, const QSizeF& size, double dpr) const;
    void paintHeldBack(QPainter& painter, const QSizeF& size, double dpr) const;
    void paintNow(QPainter& painter, const QSizeF& size) const;

    QueuePlan plan_;
    std::int64_t chosen_ = 0;
};

} // namespace vitrine::ui
