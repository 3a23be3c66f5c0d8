// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Pointer and keyboard of a BlockMap.

#include <QKeyEvent>
#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/block_map/block_map_impl.h"

namespace vitrine::ui {

namespace {

constexpr double kClick = 4;        ///< logical pixels that a click may move
constexpr double kNotch = 1.25;     ///< zoom of one step of the wheel
constexpr double kPanShare = 0.125; ///< of the view, for Shift and an arrow

/// A rectangle from two corners, inside another.
QRectF between(QPointF one, QPointF two, const QRectF& limits) {
    return QRectF(one, two).normalized().intersected(limits);
}

} // namespace

std::optional<MaskCell> BlockMap::Impl::cellAt(QPointF position) const {
    if (empty() || !layout.map.contains(position)) {
        return std::nullopt;
    }
    const QPointF pixel = (position - layout.map.topLeft()) * view.kv.ratio();
    const MaskCell found{static_cast<std::int64_t>(std::floor(view.q.positionAt(pixel.y()))),
                         static_cast<std::int64_t>(std::floor(view.kv.positionAt(pixel.x())))};
    const bool inside = found.q >= 0 && found.kv >= 0 && found.q < view.q.length() && found.kv < view.kv.length();
    return inside ? std::optional(found) : std::nullopt;
}

/// The element of the lens under the pointer.
std::optional<MaskCell> BlockMap::Impl::lensCellAt(QPointF position) const {
    const LensAnswer* const answer = currentLens();
    if (answer == nullptr || !lensPanelContains(position)) {
        return std::nullopt;
    }
    const QRectF box = lensPlace(layout.map, layout.lensSide, scene, lensCorner).picture;
    const LensQuestion& question = answer->question;
    const QSizeF size = QSizeF(answer->image.size()) / answer->image.devicePixelRatio();
    const double x = (position.x() - box.left()) / size.width();
    const double y = (position.y() - box.top()) / size.height();
    if (x < 0 || y < 0 || x >= 1 || y >= 1) {
        return cell;
    }
    return MaskCell{question.query + static_cast<std::int64_t>(y * question.rows),
                    question.key + static_cast<std::int64_t>(x * question.columns)};
}

bool BlockMap::Impl::lensPanelContains(QPointF position) const {
    return cell && currentLens() != nullptr &&
           lensPlace(layout.map, layout.lensSide, scene, lensCorner).panel.contains(position);
}

void BlockMap::Impl::setCell(std::optional<MaskCell> next, bool pin) {
    const bool wasPinned = pinned;
    const bool same = next == cell;
    pinned = pin && next;
    cell = next;
    if (!same) {
        const kernels::BlockMaskShape* shape = empty() ? nullptr : &scene.map->shape();
        const qint64 row = cell && shape != nullptr ? cell->q / shape->queryBlock : -1;
        const qint64 column = cell && shape != nullptr ? cell->kv / shape->keyBlock : -1;
        askLens();
        emit owner->cellChanged();
        if (row != blockRow || column != blockColumn) {
            blockRow = row;
            blockColumn = column;
            emit owner->blockChanged(row, column);
        }
        owner->announce();
        baseDirty = baseDirty || (!empty() && !scene.map->strips.empty()); // strips mark the pointed documents
    }
    if (pinned && (!wasPinned || !same)) {
        emit owner->cellPinned(cell->q, cell->kv);
    } else if (wasPinned && !pinned) {
        emit owner->cellReleased();
    }
    owner->update();
}

void BlockMap::Impl::scrollToCell() {
    if (empty() || !cell) {
        return;
    }
    const auto bring = [](MapAxis& axis, std::int64_t position) {
        const double pixel = axis.pixelOf(static_cast<double>(position) + 0.5);
        if (pixel >= 0 && pixel < axis.extent()) {
            return false;
        }
        axis.scrollTo(static_cast<double>(position) - axis.extent() / axis.scale() / 2);
        return true;
    };
    const bool acrossMoved = bring(view.kv, cell->kv);
    const bool downMoved = bring(view.q, cell->q);
    if (acrossMoved || downMoved) {
        viewMoved();
    }
}

std::int64_t BlockMap::Impl::stepOf(const MapAxis& axis) const {
    if (view.elements()) {
        return 1;
    }
    return axis.blockPixels() >= 1
               ? axis.block()
               : std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(1 / axis.blockPixels()))) * axis.block();
}

MaskCell BlockMap::Impl::moved(MaskCell from, int key, bool fine) const {
    const std::int64_t across = fine ? 1 : stepOf(view.kv);
    const std::int64_t down = fine ? 1 : stepOf(view.q);
    from.kv += key == Qt::Key_Right ? across : key == Qt::Key_Left ? -across : 0;
    from.q += key == Qt::Key_Down ? down : key == Qt::Key_Up ? -down : 0;
    from.kv = std::clamp<std::int64_t>(from.kv, 0, view.kv.length() - 1);
    from.q = std::clamp<std::int64_t>(from.q, 0, view.q.length() - 1);
    return from;
}

void BlockMap::Impl::moveByKey(int key, Qt::KeyboardModifiers modifiers) {
    const bool across = key == Qt::Key_Left || key == Qt::Key_Right;
    const double sign = key == Qt::Key_Left || key == Qt::Key_Up ? -1 : 1;
    if (modifiers.testFlag(Qt::ShiftModifier)) {
        MapAxis& axis = across ? view.kv : view.q;
        axis.pan(sign * kPanShare * axis.extent());
        viewMoved();
        return;
    }
    if (!cell) {
        const auto middle = [](const MapAxis& axis) {
            const double end = std::min(axis.last(), static_cast<double>(axis.length()));
            return static_cast<std::int64_t>((axis.first() + end) / 2);
        };
        setCell(MaskCell{middle(view.q), middle(view.kv)}, false);
        return;
    }
    setCell(moved(*cell, key, modifiers.testFlag(Qt::ControlModifier)), pinned);
    scrollToCell();
}

void BlockMap::Impl::paintRubberBand(QPainter& painter) const {
    if (!dragged || (drag != Drag::Box && drag != Drag::KvRange && drag != Drag::QRange)) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QRectF box = rubberBand();
    painter.fillRect(box, withAlpha(t.accent, 0.15));
    painter.setPen(QPen(t.accent, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
}

QRectF BlockMap::Impl::rubberBand() const {
    QRectF box = between(pressed, last, layout.map.united(layout.kvRuler).united(layout.qRuler));
    if (drag == Drag::KvRange) {
        box.setTop(layout.map.top());
        box.setBottom(layout.map.bottom());
    } else if (drag == Drag::QRange) {
        box.setLeft(layout.map.left());
        box.setRight(layout.map.right());
    }
    return box.intersected(layout.map);
}

void BlockMap::Impl::zoomToBand() {
    const QRectF box = rubberBand().translated(-layout.map.topLeft());
    const double ratio = view.kv.ratio();
    double kv0 = view.kv.positionAt(box.left() * ratio);
    double kv1 = view.kv.positionAt(box.right() * ratio);
    double q0 = view.q.positionAt(box.top() * ratio);
    double q1 = view.q.positionAt(box.bottom() * ratio);
    if (drag == Drag::KvRange) {
        q0 = linked ? kv0 : view.q.first();
        q1 = linked ? kv1 : view.q.last();
    } else if (drag == Drag::QRange) {
        kv0 = linked ? q0 : view.kv.first();
        kv1 = linked ? q1 : view.kv.last();
    }
    if (kv1 > kv0 && q1 > q0) {
        owner->showRange({q0, q1, kv0, kv1});
    }
}

void BlockMap::Impl::dragTo(QPointF position) {
    const QPointF delta = (last - position) * view.kv.ratio();
    switch (drag) {
    case Drag::Map:
        view.kv.pan(delta.x());
        view.q.pan(delta.y());
        break;
    case Drag::KvRuler:
        view.kv.pan(delta.x());
        if (linked) {
            view.q.pan(delta.x());
        }
        break;
    case Drag::QRuler:
        view.q.pan(delta.y());
        if (linked) {
            view.kv.pan(delta.y());
        }
        break;
    default:
        last = position;
        owner->update();
        return;
    }
    last = position;
    viewMoved();
}

void BlockMap::wheelEvent(QWheelEvent* event) {
    if (impl_->empty()) {
        event->ignore();
        return;
    }
    event->accept();
    Impl& impl = *impl_;
    const QPointF at = event->position();
    const double sideways = event->angleDelta().x() / 120.0;
    const double steps = event->angleDelta().y() / 120.0;
    impl.keepBackdrop();
    if (std::abs(sideways) > std::abs(steps)) {
        impl.view.kv.pan(-sideways * kPanShare * impl.view.kv.extent());
        impl.viewMoved();
        return;
    }
    QPointF anchor = (at - impl.layout.map.topLeft()) * impl.view.kv.ratio();
    const bool onKeys = impl.layout.kvRuler.contains(at);
    const bool onQueries = impl.layout.qRuler.contains(at);
    if (impl.linked && onKeys) {
        anchor.setY(impl.view.q.pixelOf(impl.view.kv.positionAt(anchor.x())));
    } else if (impl.linked && onQueries) {
        anchor.setX(impl.view.kv.pixelOf(impl.view.q.positionAt(anchor.y())));
    }
    impl.view.zoom(std::pow(kNotch, steps), anchor, !onQueries, !onKeys);
    impl.viewMoved();
    if (!impl.pinned && !onKeys && !onQueries) {
        impl.setCell(impl.cellAt(at), false);
    }
}

void BlockMap::mousePressEvent(QMouseEvent* event) {
    setFocus(Qt::MouseFocusReason);
    if (impl_->empty() || event->button() != Qt::LeftButton) {
        PlotWidget::mousePressEvent(event);
        return;
    }
    Impl& impl = *impl_;
    impl.pressed = impl.last = event->position();
    impl.dragged = false;
    const bool range = event->modifiers().testFlag(Qt::ShiftModifier);
    impl.drag = impl.layout.map.contains(impl.pressed)       ? (range ? Impl::Drag::Box : Impl::Drag::Map)
                : impl.layout.kvRuler.contains(impl.pressed) ? (range ? Impl::Drag::KvRange : Impl::Drag::KvRuler)
                : impl.layout.qRuler.contains(impl.pressed)  ? (range ? Impl::Drag::QRange : Impl::Drag::QRuler)
                                                             : Impl::Drag::None;
}

void BlockMap::mouseMoveEvent(QMouseEvent* event) {
    Impl& impl = *impl_;
    if (impl.empty()) {
        return;
    }
    const QPointF at = event->position();
    if (impl.drag != Impl::Drag::None && event->buttons().testFlag(Qt::LeftButton)) {
        impl.dragged = impl.dragged || (at - impl.pressed).manhattanLength() > kClick;
        if (impl.dragged) {
            impl.dragTo(at);
        }
        return;
    }
    if (!impl.pinned) {
        const auto inLens = impl.lensCellAt(at);
        impl.setCell(inLens ? inLens : impl.cellAt(at), false);
    }
}

void BlockMap::mouseReleaseEvent(QMouseEvent* event) {
    Impl& impl = *impl_;
    if (event->button() != Qt::LeftButton || impl.drag == Impl::Drag::None) {
        PlotWidget::mouseReleaseEvent(event);
        return;
    }
    const Impl::Drag drag = impl.drag;
    const bool band = drag == Impl::Drag::Box || drag == Impl::Drag::KvRange || drag == Impl::Drag::QRange;
    if (impl.dragged && band) {
        impl.last = event->position();
        impl.zoomToBand();
    } else if (!impl.dragged && drag == Impl::Drag::Map) {
        const auto inLens = impl.lensCellAt(event->position());
        const auto here = inLens ? inLens : impl.cellAt(event->position());
        if (here && impl.pinned && here == impl.cell) {
            unpin();
        } else if (here) {
            impl.setCell(here, true);
        }
    }
    impl.drag = Impl::Drag::None;
    impl.dragged = false;
    update();
}

void BlockMap::mouseDoubleClickEvent(QMouseEvent* event) {
    if (impl_->empty() || event->button() != Qt::LeftButton || !impl_->layout.map.contains(event->position()) ||
        impl_->lensPanelContains(event->position())) {
        return;
    }
    impl_->keepBackdrop();
    impl_->view.zoom(4, (event->position() - impl_->layout.map.topLeft()) * impl_->view.kv.ratio());
    impl_->viewMoved();
}

void BlockMap::leaveEvent(QEvent* event) {
    PlotWidget::leaveEvent(event);
    if (!impl_->pinned) {
        impl_->setCell(std::nullopt, false);
    }
}

void BlockMap::keyPressEvent(QKeyEvent* event) {
    Impl& impl = *impl_;
    if (impl.empty()) {
        PlotWidget::keyPressEvent(event);
        return;
    }
    switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
        impl.moveByKey(event->key(), event->modifiers());
        return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoomBy(kNotch * kNotch);
        return;
    case Qt::Key_Minus:
        zoomBy(1 / (kNotch * kNotch));
        return;
    case Qt::Key_Home:
        showAll();
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (impl.cell) {
            impl.setCell(impl.cell, !impl.pinned);
        }
        return;
    case Qt::Key_Escape:
        if (impl.pinned) {
            unpin();
            return;
        }
        if (impl.cell) {
            impl.setCell(std::nullopt, false);
            return;
        }
        break;
    default:
        break;
    }
    PlotWidget::keyPressEvent(event);
}

} // namespace vitrine::ui
