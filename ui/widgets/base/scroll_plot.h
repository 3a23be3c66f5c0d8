// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A plot that is larger than its widget: a part of it moves under scroll bars, the rest stands. It paints what is
// visible and nothing else.

#include "ui/widgets/base/plot_widget.h"

class QScrollBar;

namespace vitrine::ui {

class ScrollPlot : public PlotWidget {
    Q_OBJECT

public:
    ScrollPlot(const QString& title, QWidget* parent);
    /// What is in view, at another size and ratio.
    QImage picture(const QSizeF& size, double dpr) const;
    /// The same with any painter; without the ground.
    void paintInto(QPainter& painter, const QSizeF& size) const { paintPlot(painter, size); }
    QPointF offset() const; ///< how far the moving part is scrolled, logical pixels
    void scrollTo(QPointF offset);

    /// The bars lie along the lower edge of the widget and at the right of the moving part. Both need this room.
    static constexpr double kBarRoom = 8;

protected:
    /// The part of a widget of this size in which content moves.
    virtual QRectF movingArea(const QSizeF& size) const = 0;
    /// How large the content would like that part to be; never smaller than the part counts.
    virtual QSizeF contentSize(const QSizeF& size) const = 0;
    /// Everything but the focus frame. Content at (x, y) stands at movingArea().topLeft() + (x, y) - offset().
    virtual void paintPlot(QPainter& painter, const QSizeF& size) const = 0;

    void contentChanged(); ///< sizes may have changed: sets the bars and paints
    void reveal(const QRectF& content);
    QPointF toContent(QPointF position) const; ///< from the widget's coordinates

    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;

private:
    QScrollBar *across_, *down_;
};

} // namespace vitrine::ui
