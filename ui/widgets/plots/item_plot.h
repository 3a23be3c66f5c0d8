// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A plot of single things (bars, cells, dots) of which one is the current one: the pointer chooses it, the arrow keys
// move it, Escape lets it go, and its words go to the status bar and to assistive technology.

#include "ui/widgets/base/plot_widget.h"

class QKeyEvent;
class QMouseEvent;

namespace vitrine::ui {

class ItemPlot : public PicturePlot {
    Q_OBJECT

public:
    using PicturePlot::PicturePlot;

    /// Number of the current item, -1: none.
    int currentItem() const { return current_; }
    QString spoken() const override { return current_ < 0 ? QString() : itemText(current_); }

signals:
    void itemClicked(int item); ///< also Return on the current one

protected:
    virtual int itemCount() const = 0;
    virtual int itemAt(QPointF position) const = 0; ///< -1: nothing there
    virtual QString itemText(int item) const = 0;
    virtual QRectF itemFrame(int item) const = 0; ///< drawn around the current item; empty: no frame
    /// Where an arrow key leads from an item, -1 being none yet. The default walks with Up and Down.
    virtual int itemBeside(int item, int key) const;

    void setCurrentItem(int item);
    /// For a plot that got other items: nothing is current, nothing is reported.
    void forgetCurrentItem() { current_ = -1; }

    void keyPressEvent(QKeyEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void paintOver(QPainter& painter) override;

private:
    int current_ = -1;
};

} // namespace vitrine::ui
