// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/time_strip.h"

#include <QAccessibleWidget>
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <cmath>

namespace vitrine::ui {

namespace {

constexpr double kClickSlack = 4;
constexpr double kEdgeSlack = 4;
constexpr double kZoomStep = 1.25; // for one notch of the wheel
constexpr double kPanStep = 0.1;

/// Keys by their place, as evdev numbers them plus 8 (X11 and Wayland); 0 where the platform knows no place.
enum class Place : std::uint8_t { None, W, A, S, D };

Place placeOf(const QKeyEvent* event) {
    switch (event->nativeScanCode()) {
    case 25:
        return Place::W;
    case 38:
        return Place::A;
    case 39:
        return Place::S;
    case 40:
        return Place::D;
    case 0:
        break;
    default:
        return Place::None;
    }
    switch (event->key()) {
    case Qt::Key_W:
        return Place::W;
    case Qt::Key_A:
        return Place::A;
    case Qt::Key_S:
        return Place::S;
    case Qt::Key_D:
        return Place::D;
    default:
        return Place::None;
    }
}

class ChartInterface final : public QAccessibleWidget {
public:
    explicit ChartInterface(TimeStrip* strip) : QAccessibleWidget(strip, QAccessible::Chart), strip_(strip) {}

    QString text(QAccessible::Text kind) const override {
        switch (kind) {
        case QAccessible::Name:
            return strip_->title();
        case QAccessible::Value:
        case QAccessible::Description:
            return strip_->spoken();
        default:
            return QAccessibleWidget::text(kind);
        }
    }

private:
    TimeStrip* strip_;
};

QAccessibleInterface* makeChartInterface(const QString&, QObject* object) {
    auto* strip = qobject_cast<TimeStrip*>(object);
    return strip != nullptr ? new ChartInterface(strip) : nullptr;
}

} // namespace

void installChartAccessibility() {
    static const bool kOnce = [] {
        QAccessible::installFactory(makeChartInterface);
        return true;
    }();
    Q_UNUSED(kOnce)
}

TimeStrip::TimeStrip(const QString& title, TimeCursor* time, QWidget* parent)
    : QWidget(parent), title_(title), time_(time) {
    installChartAccessibility();
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(title);
    connect(time, &TimeCursor::cursorChanged, this, QOverload<>::of(&QWidget::update));
    connect(time, &TimeCursor::measuredChanged, this, QOverload<>::of(&QWidget::update));
    connect(time, &TimeCursor::markChanged, this, QOverload<>::of(&QWidget::update));
}

void TimeStrip::setTitle(const QString& title) {
    title_ = title;
    setAccessibleName(title);
    update();
}

void TimeStrip::setAxis(const AxisMap& axis) {
    axis_ = axis;
    update();
}

QRectF TimeStrip::plotRect() const {
    return {gutter_, 0, std::max(1.0, width() - gutter_), static_cast<double>(height())};
}

void TimeStrip::clickedAt(QPointF position, Qt::KeyboardModifiers) {
    time_->setCursor(timeAt(position.x()));
    time_->setMeasured({});
}

void TimeStrip::doubleClickedAt(QPointF) {}

void TimeStrip::hoveredAt(std::optional<QPointF>) {}

void TimeStrip::paintCursor(QPainter& painter, const QRectF& plot, bool withRange) {
    const ThemeTokens& t = themeTokens();
    painter.save();
    painter.setClipRect(plot);
    if (withRange && time_->measured()) {
        const double a = xOf(time_->measured()->begin), b = xOf(time_->measured()->end);
        painter.fillRect(QRectF(a, plot.top(), b - a, plot.height()), withAlpha(t.accent, t.dark ? 0.10 : 0.08));
        plumbline(painter, a, plot.top(), plot.bottom(), t.accent);
        plumbline(painter, b, plot.top(), plot.bottom(), t.accent);
    }
    if (time_->mark()) {
        QPen pen(t.warn, 1);
        pen.setDashPattern({2, 2});
        painter.setPen(pen);
        for (const base::TimeNs at : {time_->mark()->begin, time_->mark()->end}) {
            const double x = std::floor(std::min(xOf(at), plot.right() - 1)) + 0.5;
            painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
        }
    }
    if (hover_ && gesture_ != Gesture::Measure) {
        plumbline(painter, xOf(*hover_), plot.top(), plot.bottom(), withAlpha(t.text3, 0.5));
    }
    if (time_->cursor()) {
        plumbline(painter, std::min(xOf(*time_->cursor()), plot.right() - 1), plot.top(), plot.bottom(), t.text1);
    }
    painter.restore();
}

void TimeStrip::paintFocus(QPainter& painter, const QRectF& frame) {
    if (hasFocus() && focusSeen_) {
        painter.setPen(QPen(themeTokens().accent, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(frame.adjusted(1, 1, -1, -1));
    }
}

bool TimeStrip::event(QEvent* event) {
    // Place keys and arrows are ours while we have the focus, whatever shortcuts say.
    if (event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->modifiers() == Qt::NoModifier && placeOf(key) != Place::None) {
            event->accept();
            return true;
        }
    }
    return QWidget::event(event);
}

void TimeStrip::wheelEvent(QWheelEvent* event) {
    const QPoint delta = event->angleDelta();
    const auto modifiers = event->modifiers();
    const int turned = delta.y() != 0 ? delta.y() : delta.x();
    if (turned == 0) {
        event->accept();
        return;
    }
    const bool control = modifiers & Qt::ControlModifier;
    if ((modifiers & Qt::ShiftModifier && !control) || delta.y() == 0) {
        time_->pan(-static_cast<double>(turned) / 120.0 * kPanStep);
    } else {
        // Wheels and touchpads of high resolution send parts of a notch: they add up by themselves.
        const double notches =
            static_cast<double>(turned) / 120.0 * (control && modifiers & Qt::ShiftModifier ? 0.25 : 1.0);
        const double x = std::clamp(event->position().x(), gutter_, static_cast<double>(width()));
        time_->zoom(std::pow(kZoomStep, -notches), timeAt(x));
    }
    event->accept();
}

TimeStrip::Gesture TimeStrip::edgeAt(double x) const {
    if (!time_->measured()) {
        return Gesture::None;
    }
    const double a = std::abs(x - xOf(time_->measured()->begin)), b = std::abs(x - xOf(time_->measured()->end));
    if (std::min(a, b) > kEdgeSlack) {
        return Gesture::None;
    }
    return a < b ? Gesture::EdgeBegin : Gesture::EdgeEnd;
}

void TimeStrip::mousePressEvent(QMouseEvent* event) {
    if (!plotRect().contains(event->position())) {
        event->ignore();
        return;
    }
    pressed_ = event->position();
    pressedTime_ = timeAt(pressed_.x());
    pressedRange_ = time_->range();
    if (event->button() == Qt::MiddleButton ||
        (event->button() == Qt::LeftButton && event->modifiers() & Qt::ShiftModifier)) {
        gesture_ = Gesture::Pan;
        setCursor(Qt::ClosedHandCursor);
    } else if (event->button() == Qt::LeftButton) {
        gesture_ = edgeAt(pressed_.x());
        if (gesture_ == Gesture::None) {
            gesture_ = Gesture::Click;
        }
    } else {
        event->ignore();
    }
}

void TimeStrip::mouseMoveEvent(QMouseEvent* event) {
    const QPointF at = event->position();
    const double x = std::clamp(at.x(), gutter_, static_cast<double>(width()));
    if (gesture_ == Gesture::Click && std::abs(at.x() - pressed_.x()) >= kClickSlack) {
        gesture_ = Gesture::Measure;
    }
    switch (gesture_) {
    case Gesture::Measure:
        time_->setMeasured(TimeRange{pressedTime_, timeAt(x)});
        break;
    case Gesture::EdgeBegin:
    case Gesture::EdgeEnd: {
        const TimeRange range = *time_->measured();
        const base::TimeNs fixed = gesture_ == Gesture::EdgeBegin ? range.end : range.begin;
        const base::TimeNs moved = timeAt(x);
        if ((gesture_ == Gesture::EdgeBegin) != (moved <= fixed)) {
            gesture_ = gesture_ == Gesture::EdgeBegin ? Gesture::EdgeEnd : Gesture::EdgeBegin; // crossed
        }
        time_->setMeasured(TimeRange{fixed, moved});
        break;
    }
    case Gesture::Pan: {
        const double part = (pressed_.x() - at.x()) / std::max(1.0, axis_.width());
        const auto shift = static_cast<base::TimeNs>(part * static_cast<double>(pressedRange_.length()));
        time_->setRange({pressedRange_.begin + shift, pressedRange_.end + shift});
        break;
    }
    default:
        setCursor(edgeAt(at.x()) != Gesture::None ? Qt::SizeHorCursor : Qt::ArrowCursor);
        break;
    }
    const bool inside = plotRect().contains(at);
    hover_ = inside ? std::optional(timeAt(x)) : std::nullopt;
    hoveredAt(inside ? std::optional(at) : std::nullopt);
    emit hoverChanged();
    update();
}

void TimeStrip::mouseReleaseEvent(QMouseEvent* event) {
    const Gesture done = gesture_;
    gesture_ = Gesture::None;
    unsetCursor();
    if (done == Gesture::Click) {
        clickedAt(event->position(), event->modifiers());
    }
}

void TimeStrip::mouseDoubleClickEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton && plotRect().contains(event->position())) {
        doubleClickedAt(event->position());
    }
}

void TimeStrip::leaveEvent(QEvent*) {
    hover_.reset();
    hoveredAt(std::nullopt);
    emit hoverChanged();
    update();
}

void TimeStrip::moveKeyboardCursor(int pixels, bool measure) {
    const base::TimeNs now = time_->cursor().value_or(timeAt(gutter_ + axis_.width() / 2));
    const base::TimeNs next = std::clamp(timeAt(xOf(now) + pixels), time_->range().begin, time_->range().end);
    if (measure) {
        const base::TimeNs anchor =
            time_->measured() ? (time_->measured()->begin == now ? time_->measured()->end : time_->measured()->begin)
                              : now;
        time_->setMeasured(TimeRange{anchor, next});
    }
    time_->setCursor(next);
}

void TimeStrip::keyPressEvent(QKeyEvent* event) {
    const auto modifiers = event->modifiers() & ~Qt::KeypadModifier;
    const base::TimeNs anchor =
        hover_.value_or(time_->cursor().value_or(time_->range().begin + time_->range().length() / 2));
    const Place place = modifiers == Qt::NoModifier ? placeOf(event) : Place::None;
    const int key = event->key();
    const bool control = modifiers & Qt::ControlModifier;
    if (place == Place::W || key == Qt::Key_Plus || (key == Qt::Key_Equal && modifiers == Qt::NoModifier)) {
        time_->zoom(1 / (kZoomStep * kZoomStep), anchor);
    } else if (place == Place::S || (key == Qt::Key_Minus && !control)) {
        time_->zoom(kZoomStep * kZoomStep, anchor);
    } else if (place == Place::A || (key == Qt::Key_Left && modifiers == Qt::NoModifier)) {
        time_->pan(-kPanStep);
    } else if (place == Place::D || (key == Qt::Key_Right && modifiers == Qt::NoModifier)) {
        time_->pan(kPanStep);
    } else if (control && (key == Qt::Key_Left || key == Qt::Key_Right)) {
        moveKeyboardCursor(key == Qt::Key_Left ? -8 : 8, modifiers & Qt::ShiftModifier);
    } else if (modifiers == Qt::NoModifier && (key == Qt::Key_Up || key == Qt::Key_Down)) {
        emit laneWanted(key == Qt::Key_Up ? -1 : 1);
    } else if (key == Qt::Key_Menu) {
        const base::TimeNs at = time_->cursor().value_or(anchor);
        emit menuWanted(mapToGlobal(QPoint(static_cast<int>(xOf(at)), height() / 2)), at);
    } else {
        QWidget::keyPressEvent(event);
    }
}

void TimeStrip::focusInEvent(QFocusEvent* event) {
    const Qt::FocusReason reason = event->reason();
    focusSeen_ = reason == Qt::TabFocusReason || reason == Qt::BacktabFocusReason || reason == Qt::ShortcutFocusReason;
    QWidget::focusInEvent(event);
}

void TimeStrip::contextMenuEvent(QContextMenuEvent* event) {
    if (plotRect().contains(event->pos())) {
        emit menuWanted(event->globalPos(), timeAt(event->pos().x()));
        event->accept();
    }
}

} // namespace vitrine::ui
