// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The base of everything that lies on the shared axis: one input grammar for all of them. Wheel zooms at the pointer,
// Shift+wheel, middle-drag and Shift+drag move, left-drag measures, the measured range has edges that can be dragged,
// a click sets the cursor. W S A D are places on the keyboard.

#include <QWidget>

#include "ui/models/common/axis_map.h"
#include "ui/models/common/time_cursor.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

class TimeStrip : public QWidget {
    Q_OBJECT

public:
    TimeStrip(const QString& title, TimeCursor* time, QWidget* parent);

    const QString& title() const { return title_; }
    void setTitle(const QString& title);
    /// The axis of the stack; its width is that of the plot.
    virtual void setAxis(const AxisMap& axis);
    const AxisMap& axis() const { return axis_; }
    double gutter() const { return gutter_; }
    void setGutter(double gutter) { gutter_ = gutter; }

    double xOf(base::TimeNs time) const { return gutter_ + axis_.x(time); }
    base::TimeNs timeAt(double x) const { return axis_.time(x - gutter_); }
    std::optional<base::TimeNs> hovered() const { return hover_; }

    /// What a screen reader says about the strip at the cursor: "Cursor 10.93 s. Total 64.36 GiB: logits 36.82, ...".
    virtual QString spoken() const { return {}; }

signals:
    void hoverChanged();
    void laneWanted(int direction); ///< Up and Down: the neighbour gets the focus
    void menuWanted(const QPoint& globalPosition, qint64 time);

protected:
    TimeCursor* time() const { return time_; }
    virtual void clickedAt(QPointF position, Qt::KeyboardModifiers modifiers);
    virtual void doubleClickedAt(QPointF position);
    virtual void hoveredAt(std::optional<QPointF> position);
    /// The part of the strip in which the grammar holds.
    virtual QRectF plotRect() const;
    /// Cursor, pointer and measured range over the plot.
    void paintCursor(QPainter& painter, const QRectF& plot, bool withRange = true);
    void paintFocus(QPainter& painter, const QRectF& frame);

    bool event(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;

private:
    enum class Gesture : std::uint8_t { None, Click, Measure, EdgeBegin, EdgeEnd, Pan };
    Gesture edgeAt(double x) const;
    void moveKeyboardCursor(int pixels, bool measure);

    QString title_;
    TimeCursor* time_;
    AxisMap axis_;
    double gutter_ = kGutter;
    Gesture gesture_ = Gesture::None;
    QPointF pressed_;
    base::TimeNs pressedTime_ = 0;
    TimeRange pressedRange_;
    double wheelRest_ = 0;
    std::optional<base::TimeNs> hover_;
    bool focusSeen_ = false; ///< the focus came by the keyboard, so its frame is shown
};

/// Registers the accessible interface of strips (role Chart). Called by the theme's install and by tests; idempotent.
void installChartAccessibility();

} // namespace vitrine::ui
