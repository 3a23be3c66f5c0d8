// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A bar for each token of a text about zero: filled above, hollow below. Where bars would be narrower than 2 px, the
// largest of those that share a column of pixels is drawn.

#include <vector>

#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

class TokenBars final : public ItemPlot {
    Q_OBJECT

public:
    explicit TokenBars(const QString& title, QWidget* parent = nullptr);
    /// `above` and `below` say what a bar there means.
    void setBars(std::vector<double> values, const QString& above, const QString& below);
    int barCount() const { return static_cast<int>(values_.size()); }
    /// The bar with the frame; -1: none.
    void setCurrentBar(int bar) { setCurrentItem(bar); }
    QImage picture(const QSizeF& size, double dpr) const override;
    /// Where several stand under each other: without the numbers of the tokens.
    void setLow(bool low);
    QSize sizeHint() const override { return {320, minimumSizeHint().height()}; }
    QSize minimumSizeHint() const override { return {160, low_ ? 36 : 66}; }

signals:
    void barShown(int bar); ///< under the pointer or chosen with the keyboard; -1: none

protected:
    int itemCount() const override { return barCount(); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    int itemBeside(int item, int key) const override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    QRectF plot(const QSizeF& size) const;
    QRectF barOf(int bar, const QRectF& plot) const;

    std::vector<double> values_; ///< not finite: no bar
    double most_ = 1;            ///< the end of the scale, round
    QString above_, below_;
    bool low_ = false;
};

} // namespace vitrine::ui
