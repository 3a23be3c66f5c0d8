// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/block_map/block_map_frame.h"

#include <algorithm>
#include <cmath>

namespace vitrine::ui {

namespace {

constexpr double kLargestElement = 48;  ///< logical pixels
constexpr double kSeparateBlocks = 4;   ///< device pixels from which a block is a whole number of them
constexpr double kThinnestContent = 48; ///< logical pixels of a short axis that is linked to a long one

/// Blocks and elements that can be distinguished are whole pixels, or their sizes would alternate.
double snapped(double scale, std::int64_t block, bool down) {
    const auto whole = [down](double value) { return down ? std::floor(value + 1e-9) : std::round(value); };
    if (scale >= 1) {
        return std::max(1.0, whole(scale));
    }
    const double pixels = scale * static_cast<double>(block);
    return pixels >= kSeparateBlocks ? whole(pixels) / static_cast<double>(block) : scale;
}

} // namespace

MapAxis::MapAxis(std::int64_t length, std::int64_t block, double extent, double dpr)
    : length_(std::max<std::int64_t>(1, length)), block_(std::max<std::int64_t>(1, block)),
      extent_(std::max(1.0, extent)), dpr_(dpr) {
    setFit(0);
}

std::int64_t MapAxis::pixels() const {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(length_) * scale_ - 1e-6));
}

double MapAxis::roomiest() const {
    return std::min(extent_ / static_cast<double>(length_), kLargestElement * dpr_);
}

void MapAxis::setFit(double scale) {
    fit_ = snapped(scale > 0 ? std::min(scale, roomiest()) : roomiest(), block_, true);
    most_ = std::max(fit_, kLargestElement * dpr_);
    level_ = std::clamp(level_, 1.0, closest());
    rescale();
    clampOrigin();
}

void MapAxis::rescale() {
    scale_ = level_ <= 1 ? fit_ : snapped(fit_ * level_, block_, false);
}

void MapAxis::clampOrigin() {
    const auto most = static_cast<std::int64_t>(std::ceil(static_cast<double>(pixels()) - extent_));
    origin_ = std::clamp<std::int64_t>(origin_, 0, std::max<std::int64_t>(0, most));
}

void MapAxis::setExactScale(double scale) {
    scale_ = scale;
    level_ = std::max(1.0, scale / fit_);
    clampOrigin();
}

void MapAxis::setLevel(double level, double anchorPosition, double anchorPixel) {
    level_ = std::clamp(level, 1.0, closest());
    rescale();
    origin_ = std::llround(anchorPosition * scale_ - anchorPixel);
    clampOrigin();
}

void MapAxis::scrollTo(double positionAtEdge) {
    origin_ = std::llround(positionAtEdge * scale_);
    clampOrigin();
}

void MapAxis::pan(double pixels) {
    origin_ += std::llround(pixels);
    clampOrigin();
}

void MapAxis::show(double first, double last) {
    const double span = std::max(1e-3, last - first);
    level_ = std::clamp(extent_ / span / fit_, 1.0, closest());
    rescale();
    scrollTo((first + last) / 2 - extent_ / scale_ / 2);
}

void MapAxis::setRoom(double extent, double dpr) {
    extent_ = std::max(1.0, extent);
    dpr_ = dpr;
    setFit(0);
}

MapView MapView::whole(std::int64_t queries, std::int64_t keys, std::int64_t queryBlock, std::int64_t keyBlock,
                       QSizeF mapSize, double dpr, bool linked) {
    MapView view;
    view.linked = linked;
    view.kv = MapAxis(keys, keyBlock, mapSize.width() * dpr, dpr);
    view.q = MapAxis(queries, queryBlock, mapSize.height() * dpr, dpr);
    view.fitBoth();
    return view;
}

void MapView::fitBoth() {
    if (!linked) {
        kv.setFit(0);
        q.setFit(0);
        return;
    }
    const double together = std::min(kv.roomiest(), q.roomiest());
    for (MapAxis* axis : {&kv, &q}) {
        const double thin = kThinnestContent * axis->ratio() / static_cast<double>(axis->length());
        axis->setFit(std::max(together, thin));
    }
}

void MapView::setLinked(bool on) {
    linked = on;
    const double first = q.first();
    const double last = q.last();
    fitBoth();
    if (on) {
        q.setLevel(kv.level(), (first + last) / 2, q.extent() / 2);
    } else {
        q.show(first, last);
    }
}

void MapView::resize(QSizeF mapSize, double dpr) {
    struct Kept {
        double first, logicalScale;
    };
    const auto kept = [](const MapAxis& axis) { return Kept{axis.first(), axis.fit() * axis.level() / axis.ratio()}; };
    const bool all = kv.showsAll() && q.showsAll();
    const Kept keys = kept(kv);
    const Kept queries = kept(q);
    kv.setRoom(mapSize.width() * dpr, dpr);
    q.setRoom(mapSize.height() * dpr, dpr);
    fitBoth();
    if (all) {
        showAll();
        return;
    }
    kv.setLevel(keys.logicalScale * dpr / kv.fit(), keys.first, 0);
    q.setLevel(linked ? kv.level() : queries.logicalScale * dpr / q.fit(), queries.first, 0);
}

void MapView::showAll() {
    fitBoth();
    kv.setLevel(1, 0, 0);
    q.setLevel(1, 0, 0);
}

void MapView::zoom(double factor, QPointF anchor, bool alongKeys, bool alongQueries) {
    if (linked) {
        // An axis that is as close as it gets waits for the other.
        const double most = std::max(kv.closest(), q.closest());
        const double level = std::clamp(std::max(kv.level(), q.level()) * factor, 1.0, most);
        const double kvAnchor = kv.positionAt(anchor.x());
        const double qAnchor = q.positionAt(anchor.y());
        kv.setLevel(level, kvAnchor, anchor.x());
        q.setLevel(level, qAnchor, anchor.y());
        return;
    }
    if (alongKeys) {
        kv.setLevel(kv.level() * factor, kv.positionAt(anchor.x()), anchor.x());
    }
    if (alongQueries) {
        q.setLevel(q.level() * factor, q.positionAt(anchor.y()), anchor.y());
    }
}

void MapView::showRange(double q0, double q1, double kv0, double kv1) {
    kv.show(kv0, kv1);
    q.show(q0, q1);
    if (linked) {
        const bool onlyKeys = q.closest() <= 1;
        const bool onlyQueries = kv.closest() <= 1;
        const double level = onlyKeys ? kv.level() : onlyQueries ? q.level() : std::min(kv.level(), q.level());
        kv.setLevel(level, (kv0 + kv1) / 2, kv.extent() / 2);
        q.setLevel(level, (q0 + q1) / 2, q.extent() / 2);
    }
}

MapLayout mapLayout(QSizeF size, double gutter, int strips, QSizeF content) {
    constexpr double kLeastMap = 360;                                  ///< the lens has room in it
    constexpr double kLens = 256, kSmallLens = 128, kRoomOfLens = 292; ///< with its panel
    constexpr double kLargeMask = 500;                                 ///< the lens covers a corner of it
    constexpr double kRuler = 21, kRight = 3, kLegend = 24, kStrip = 16, kGap = 8, kLoad = 44, kBottom = 8;
    MapLayout layout;
    const double width = std::max(1.0, size.width() - gutter - kRight);
    double below = 2 + kLegend + kBottom;
    // Short windows give the strips up first: the map must keep its room.
    int shown = strips;
    const bool load = size.height() - below - kRuler - kLoad - kGap >= 240;
    below += load ? kLoad + kGap : 0;
    while (shown > 0 && size.height() - below - kRuler - shown * (kStrip + kGap) < 240) {
        --shown;
    }
    below += shown * (kStrip + kGap);
    double height = std::max(1.0, size.height() - kRuler - below);
    if (!content.isEmpty()) {
        height = std::min(height, std::max(kLeastMap, std::ceil(content.height())));
    }
    layout.map = QRectF(gutter, kRuler, width, height);
    layout.kvRuler = QRectF(gutter, 0, width, kRuler);
    layout.qRuler = QRectF(0, kRuler, gutter, layout.map.height());
    double y = layout.map.bottom() + 2;
    layout.legend = QRectF(gutter, y, width, kLegend);
    y += kLegend;
    for (int i = 0; i < shown; ++i) {
        layout.strips.emplace_back(gutter, y, width, kStrip);
        y += kStrip + kGap;
    }
    if (load) {
        layout.load = QRectF(gutter, y, width, kLoad);
    }
    const bool beside = width - content.width() >= kRoomOfLens;
    const bool fits = width >= 540 && height >= kLeastMap;
    layout.lensSide = fits && (beside || content.width() >= kLargeMask) ? kLens : kSmallLens;
    return layout;
}

std::int64_t rulerStep(double pixelsPerPosition, double wanted) {
    std::int64_t step = 1;
    while (static_cast<double>(step) * pixelsPerPosition < wanted && step < (std::int64_t{1} << 40)) {
        step *= 2;
    }
    return step;
}

} // namespace vitrine::ui
