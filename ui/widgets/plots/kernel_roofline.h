// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// FLOP rate against arithmetic intensity on logarithmic scales, with the ceilings of the device and a dot for each
// kernel.

#include "ui/models/kernels/kernel_stats.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

class KernelRoofline final : public ItemPlot {
    Q_OBJECT

public:
    KernelRoofline(const QString& title, QWidget* parent);

    void setDots(std::vector<RooflineDot> dots, const Ceilings& ceilings);
    /// The dot with this name stands out and is named.
    void setChosen(const QString& name);

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize minimumSizeHint() const override { return {200, 160}; }
    QSize sizeHint() const override { return {304, 160}; }
    /// Where a dot lies in a plot of that size.
    QPointF dotAt(std::size_t dot, const QSizeF& size) const;
    const std::vector<RooflineDot>& dots() const { return dots_; }

signals:
    void dotChosen(const QString& name);

protected:
    int itemCount() const override { return static_cast<int>(dots_.size()); }
    int itemAt(QPointF position) const override;
    int itemBeside(int item, int key) const override;
    QString itemText(int item) const override { return dots_[static_cast<std::size_t>(item)].words; }
    QRectF itemFrame(int item) const override;

private:
    struct Scale {
        double low = 0, high = 1; ///< powers of ten
    };
    Scale across() const;
    Scale up() const;
    static QRectF plotOf(const QSizeF& size);
    QPointF place(double intensity, double rate, const QSizeF& size) const;
    std::vector<RooflineDot> dots_;
    Ceilings ceilings_;
    QString chosen_;
};

} // namespace vitrine::ui
