// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Counts of values of a matrix before and after rounding, over one axis of values: A, the rounded ones, as a solid
// area, B, the original ones, as a dashed line. Counts are on a logarithmic scale.

#include <memory>

#include "engine/workload/precision/tensor_detail.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

class HistogramLane final : public ItemPlot {
    Q_OBJECT

public:
    using HistogramPtr = std::shared_ptr<const engine::ValueHistogram>;

    HistogramLane(const QString& title, QWidget* parent);
    /// Null: nothing is known, and only the axes are drawn. `a` and `b` are the words at
    /// the area and at the line: "A, INT4".
    void setHistogram(HistogramPtr histogram, const QString& a, const QString& b);

    QImage picture(const QSizeF& size, double dpr) const override;
    QString spoken() const override;
    QSize sizeHint() const override { return {320, 138}; }
    QSize minimumSizeHint() const override { return {180, 110}; }

protected:
    int itemCount() const override; ///< items are pairs of pixels of the plot
    int itemAt(QPointF position) const override;
    int itemBeside(int item, int key) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    struct Bars; ///< counts of the histogram, as many as there is room for
    Bars bars(const QRectF& plot) const;
    static QRectF plotOf(const QSizeF& size);
    void paintCounts(QPainter& painter, const QRectF& plot, const Bars& bars, double decades) const;
    void paintAxes(QPainter& painter, const QRectF& plot, double decades) const;

    HistogramPtr histogram_;
    QString a_, b_;
};

} // namespace vitrine::ui
