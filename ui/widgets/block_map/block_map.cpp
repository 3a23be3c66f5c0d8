// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/block_map/block_map.h"

#include <QBackingStore>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/block_map/block_map_impl.h"

namespace vitrine::ui {

BlockMap::BlockMap(QWidget* parent) : PlotWidget(tr("Mask map"), parent), impl_(std::make_unique<Impl>(this)) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    connect(&Theme::instance(), &Theme::changed, this, [this] { impl_->refresh(); });
    connect(&impl_->tiles, &BlockMapTiles::arrived, this, [this] {
        impl_->baseDirty = true;
        if (impl_->tiles.complete()) {
            impl_->backdrop = {};
            if (!impl_->settledSent) {
                impl_->settledSent = true;
                emit tilesSettled();
            }
        }
        update();
    });
}

BlockMap::~BlockMap() = default;

void BlockMap::setMaps(MaskMapPtr a, MaskMapPtr b) {
    const MaskMapPtr before = shownMap();
    const MaskRange range = visible();
    const bool all = impl_->empty() || (impl_->view.kv.showsAll() && impl_->view.q.showsAll());
    impl_->a = std::move(a);
    impl_->b = std::move(b);
    impl_->backdrop = {};
    impl_->difference.reset();
    impl_->resetView();
    const MaskMapPtr now = shownMap();
    const bool kept =
        before != nullptr && now != nullptr && before->queries() == now->queries() && before->keys() == now->keys();
    if (kept && !all) {
        impl_->view.showRange(range.q0, range.q1, range.kv0, range.kv1);
    }
    if (!kept) {
        impl_->setCell(std::nullopt, false);
    }
    impl_->askDifference();
    impl_->viewMoved();
}

void BlockMap::setSide(Side side) {
    if (impl_->side == side) {
        return;
    }
    const MaskMapPtr before = shownMap();
    const MaskRange range = visible();
    impl_->side = side;
    impl_->backdrop = {};
    const MaskMapPtr now = shownMap();
    const bool same = before != nullptr && now != nullptr && comparable(*before, *now);
    if (!same) {
        impl_->resetView();
        if (before != nullptr && now != nullptr && before->queries() == now->queries() &&
            before->keys() == now->keys()) {
            impl_->view.showRange(range.q0, range.q1, range.kv0, range.kv1);
        }
    }
    impl_->viewMoved();
}

void BlockMap::setContent(Content content) {
    if (impl_->content != content) {
        impl_->content = content;
        impl_->backdrop = {};
        impl_->refresh();
    }
}

BlockMap::Side BlockMap::side() const {
    return impl_->side;
}

BlockMap::Content BlockMap::content() const {
    return impl_->content;
}

MaskMapPtr BlockMap::shownMap() const {
    return impl_->side == Side::B ? impl_->b : impl_->a;
}

void BlockMap::setEmptyText(const QString& text) {
    impl_->emptyText = text;
    update();
}

void BlockMap::setLinked(bool linked) {
    if (impl_->linked == linked) {
        return;
    }
    impl_->linked = linked;
    impl_->keepBackdrop();
    impl_->view.setLinked(linked);
    impl_->relayout();
}

bool BlockMap::linked() const {
    return impl_->linked;
}

MaskRange BlockMap::visible() const {
    const MapView& view = impl_->view;
    return {view.q.first(), view.q.last(), view.kv.first(), view.kv.last()};
}

void BlockMap::showAll() {
    impl_->keepBackdrop();
    impl_->view.showAll();
    impl_->viewMoved();
}

void BlockMap::showRange(const MaskRange& range) {
    impl_->keepBackdrop();
    impl_->view.showRange(range.q0, range.q1, range.kv0, range.kv1);
    impl_->viewMoved();
}

void BlockMap::zoomBy(double factor) {
    impl_->keepBackdrop();
    QPointF anchor(impl_->view.kv.extent() / 2, impl_->view.q.extent() / 2);
    if (impl_->cell) {
        const QPointF middle = impl_->picture().elementRect(*impl_->cell).center();
        if (impl_->layout.map.contains(middle)) {
            anchor = (middle - impl_->layout.map.topLeft()) * impl_->view.kv.ratio();
        }
    }
    impl_->view.zoom(factor, anchor);
    impl_->viewMoved();
}

double BlockMap::pixelsPerToken() const {
    return impl_->view.kv.scale() / impl_->view.kv.ratio();
}

std::optional<MaskCell> BlockMap::cell() const {
    return impl_->cell;
}

bool BlockMap::pinned() const {
    return impl_->pinned;
}

void BlockMap::goTo(MaskCell cell, bool pin) {
    if (impl_->empty()) {
        return;
    }
    cell.q = std::clamp<std::int64_t>(cell.q, 0, impl_->scene.map->queries() - 1);
    cell.kv = std::clamp<std::int64_t>(cell.kv, 0, impl_->scene.map->keys() - 1);
    impl_->setCell(cell, pin);
    impl_->scrollToCell();
}

void BlockMap::unpin() {
    if (impl_->pinned) {
        impl_->pinned = false;
        emit cellReleased();
        update();
    }
}

bool BlockMap::settled() const {
    return impl_->empty() || (impl_->tiles.complete() && !impl_->lensJob.busy() && !impl_->differenceJob.busy() &&
                              !impl_->cornerJob.busy());
}

QString BlockMap::spoken() const {
    if (impl_->empty()) {
        return impl_->emptyText;
    }
    const MaskMap& map = *impl_->scene.map;
    if (impl_->cell) {
        return cellText(impl_->currentLens(), impl_->cell->q, impl_->cell->kv);
    }
    return tr("%1: %2 full, %3 partial, %4 empty blocks")
        .arg(map.name, countText(map.full), countText(map.partial), countText(map.empty));
}

void BlockMap::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    // The painter's own device is this widget even when it paints elsewhere.
    const QPaintDevice* const target = redirected(nullptr);
    const double dpr = (target != nullptr ? target : this)->devicePixelRatioF();
    QBackingStore* const store = backingStore();
    if (target != nullptr && (store == nullptr || store->paintDevice() != target)) {
        // Someone takes a picture: it must be whole.
        impl_->paintComplete(painter, dpr, true);
    } else {
        if (!impl_->empty() && dpr != impl_->view.kv.ratio()) {
            impl_->relayout();
        }
        painter.drawImage(QPointF(0, 0), impl_->base(dpr));
        if (!impl_->empty()) {
            paintCursor(painter, impl_->picture());
            impl_->paintRubberBand(painter);
        }
    }
    paintFocus(painter);
}

void BlockMap::resizeEvent(QResizeEvent* event) {
    PlotWidget::resizeEvent(event);
    impl_->backdrop = {};
    impl_->relayout();
}

} // namespace vitrine::ui
