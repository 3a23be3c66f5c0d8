// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The weights of one group on the levels of their format: a circle for each weight, a bar for what it became, and
// below them the numbers. The weight with the largest error is tinted. Long groups scroll.

#include <memory>

#include "engine/workload/precision/tensor_detail.h"
#include "ui/widgets/base/scroll_plot.h"

namespace vitrine::ui {

class GroupGrid final : public ScrollPlot {
    Q_OBJECT

public:
    using GroupPtr = std::shared_ptr<const engine::GroupDetail>;

    GroupGrid(const QString& title, QWidget* parent);
    /// Null: no group is known. Values, rounded ones and codes are as many.
    void setGroup(GroupPtr group);
    /// The weight under the pointer or the keyboard's cursor, by its place in the group; -1: none.
    int currentWeight() const { return current_; }
    QString spoken() const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {320, sizeHint().height()}; }

protected:
    QRectF movingArea(const QSizeF& size) const override;
    QSizeF contentSize(const QSizeF& size) const override;
    void paintPlot(QPainter& painter, const QSizeF& size) const override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    int count() const;
    double cellWidth(const QSizeF& size) const;
    double levelY(double value) const;
    void paintLevels(QPainter& painter, const QSizeF& size) const;
    /// The power of ten in whose units all numbers fit their cells.
    int shownPower(const QSizeF& size) const;
    void paintHeads(QPainter& painter, int power) const;
    void paintWeight(QPainter& painter, const QRectF& cell, std::size_t weight, int power) const;
    void paintWords(QPainter& painter, const QSizeF& size) const;
    void setCurrent(int weight);

    GroupPtr group_;
    double limit_ = 1; ///< the value at the upper edge
    int power_ = 0;    ///< in units of 10^power the largest number has four digits
    int current_ = -1, worst_ = -1;
    bool even_ = false;
};

} // namespace vitrine::ui
