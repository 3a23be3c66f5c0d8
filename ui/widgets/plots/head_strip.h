// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One bar for each head: how much of its mask is computed. Arrows and clicks choose a head.

#include <vector>

#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

class HeadStrip final : public ItemPlot {
    Q_OBJECT

public:
    explicit HeadStrip(QWidget* parent = nullptr);
    /// `shares`: of computed blocks, for each head; one share for all of `heads` heads when they share a mask.
    void setHeads(std::vector<double> shares, int heads, int chosen);

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override { return {300, 28}; }
    QSize minimumSizeHint() const override { return {120, 28}; }

protected:
    int itemCount() const override { return heads_; }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    int itemBeside(int item, int key) const override;

private:
    double shareOf(int head) const;
    QRectF bar(int head, const QSizeF& size) const;
    std::vector<double> shares_;
    int heads_ = 0, chosen_ = 0;
};

} // namespace vitrine::ui
