// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/item_plot.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

int ItemPlot::itemBeside(int item, int key) const {
    return key == Qt::Key_Down ? std::min(itemCount() - 1, item + 1) : key == Qt::Key_Up ? std::max(0, item - 1) : item;
}

void ItemPlot::setCurrentItem(int item) {
    if (item != current_) {
        current_ = item;
        update();
        announce();
        if (current_ < 0) {
            emit readoutChanged({});
        }
    }
}

void ItemPlot::keyPressEvent(QKeyEvent* event) {
    const int key = event->key();
    const bool arrow = key == Qt::Key_Down || key == Qt::Key_Up || key == Qt::Key_Left || key == Qt::Key_Right;
    if (arrow && itemCount() > 0) {
        if (const int next = itemBeside(current_, key); next != current_) {
            return setCurrentItem(next);
        }
    } else if (key == Qt::Key_Escape && current_ >= 0) {
        return setCurrentItem(-1);
    } else if ((key == Qt::Key_Return || key == Qt::Key_Enter) && current_ >= 0) {
        emit itemClicked(current_);
        return;
    }
    PicturePlot::keyPressEvent(event);
}

void ItemPlot::mouseMoveEvent(QMouseEvent* event) {
    setCurrentItem(itemAt(event->position()));
}

void ItemPlot::mousePressEvent(QMouseEvent* event) {
    PicturePlot::mousePressEvent(event);
    if (const int item = itemAt(event->position()); item >= 0 && event->button() == Qt::LeftButton) {
        setCurrentItem(item);
        emit itemClicked(item);
    }
}

void ItemPlot::leaveEvent(QEvent* event) {
    PicturePlot::leaveEvent(event);
    setCurrentItem(-1);
}

void ItemPlot::paintOver(QPainter& painter) {
    if (current_ < 0) {
        return;
    }
    if (const QRectF frame = itemFrame(current_); !frame.isEmpty()) {
        painter.setPen(QPen(themeTokens().accent, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(frame);
    }
}

} // namespace vitrine::ui
