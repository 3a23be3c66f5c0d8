// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The time that the bytes of a token need at the device's bandwidth, by part, above the time that it took; below them
// the parts as a table.

#include "profiler/analysis/roofline_summary.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

class RooflinePlot final : public ItemPlot {
    Q_OBJECT

public:
    explicit RooflinePlot(QWidget* parent);
    void setFacts(profiler::RooflineSummary facts);

    QImage picture(const QSizeF& size, double dpr) const override;
    QString spoken() const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {240, sizeHint().height()}; }
    /// The part's piece of the upper bar.
    QRectF pieceRect(std::size_t part, double width) const;

protected:
    int itemCount() const override { return static_cast<int>(facts_.parts.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    QRectF barRect(int row, double seconds, double width) const;
    QRectF rowRect(std::size_t part, double width) const;
    profiler::RooflineSummary facts_;
};

} // namespace vitrine::ui
