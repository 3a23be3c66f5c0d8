// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The signal-to-noise ratio of each expert of one cell of the heat map; the one that is looked at has a frame and its
// number.

#include <vector>

#include "ui/models/precision/error_scale.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

class ExpertStrip final : public ItemPlot {
    Q_OBJECT

public:
    ExpertStrip(const QString& title, QWidget* parent);
    /// dB of each expert, NaN where it is not known. `chosen` is a number of an expert, or -1.
    void setExperts(std::vector<float> ratios, const ErrorScale& scale, int chosen);

    QImage picture(const QSizeF& size, double dpr) const override;
    QString spoken() const override;
    QSize sizeHint() const override { return {348, 112}; }
    QSize minimumSizeHint() const override { return {200, 96}; }

protected:
    int itemCount() const override { return static_cast<int>(ratios_.size()); }
    int itemAt(QPointF position) const override;
    int itemBeside(int item, int key) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    QRectF dotOf(int expert, const QSizeF& size) const;
    void paintChosen(QPainter& painter, const QSizeF& size) const;

    std::vector<float> ratios_;
    ErrorScale scale_;
    int chosen_ = -1;
    double low_ = 0, high_ = 1; ///< dB at the edges
};

} // namespace vitrine::ui
