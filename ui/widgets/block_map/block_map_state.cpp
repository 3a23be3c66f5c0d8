// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a BlockMap asks its workers for, and how its picture is put together.

#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/block_map/block_map_impl.h"

namespace vitrine::ui {

namespace {

/// Blocks [begin, end) of an axis as one cell.
std::vector<std::int64_t> blockSpan(const MapAxis& axis, double first, double last) {
    const auto block = static_cast<double>(axis.block());
    const auto begin = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(first / block)), 0, axis.blocks());
    const auto end = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(last / block)), begin, axis.blocks());
    return {begin, end};
}

/// The corner of the view (see lensPlace) in which the lens covers the least.
int emptiestCorner(const TileScene& scene, const MapView& view, QSizeF lens) {
    constexpr double kAsGoodAsEmpty = 0.02;
    int best = 0;
    double least = 2;
    for (int corner = 0; corner < 4; ++corner) {
        const bool right = corner == 0 || corner == 2;
        const bool top = corner == 0 || corner == 3;
        const double wide = std::min(lens.width(), view.kv.extent());
        const double high = std::min(lens.height(), view.q.extent());
        const double x = right ? view.kv.extent() - wide : 0;
        const double y = top ? 0 : view.q.extent() - high;
        const auto columns = blockSpan(view.kv, view.kv.positionAt(x), view.kv.positionAt(x + wide));
        const auto rows = blockSpan(view.q, view.q.positionAt(y), view.q.positionAt(y + high));
        const BlockGrid grid = countBlocks(*scene.map, scene.other.get(), columns, rows);
        double computed = 0;
        double all = 1;
        for (const BlockCounts& counts : grid.cells) {
            const double empty = static_cast<double>(counts[mask_kind::kEmpty]);
            double sum = 0;
            for (const std::int64_t count : counts) {
                sum += static_cast<double>(count);
            }
            computed = sum - empty;
            all = std::max(1.0, sum);
        }
        // Less than the area of the lens may lie over the mask at all.
        const double share =
            computed / all * std::min(1.0, all * view.kv.blockPixels() * view.q.blockPixels() / (wide * high));
        if (share <= kAsGoodAsEmpty) {
            return corner;
        }
        if (share < least) {
            least = share;
            best = corner;
        }
    }
    return best;
}

HeatScale heatOf(const MaskMap& map, const MaskMap* other) {
    HeatScale heat{map.scoreLow, map.scoreHigh, false};
    if (other != nullptr) {
        heat.high = std::max(std::abs(map.scoreHigh - other->scoreLow), std::abs(map.scoreLow - other->scoreHigh));
        heat.signedValues = true;
    } else if (heat.low < 0 && heat.high > 0) {
        heat.high = std::max(-heat.low, heat.high);
        heat.signedValues = true;
    }
    if (heat.signedValues) {
        heat.low = -heat.high;
    }
    return heat;
}

} // namespace

BlockMap::Impl::Impl(BlockMap* map)
    : owner(map), emptyText(BlockMap::tr("No mask. Write a program, or choose one from the catalogue.")),
      tiles(nullptr), lensJob(map), differenceJob(map), cornerJob(map) {}

BlockMap::Impl::~Impl() {
    lensStop.request_stop();
    differenceStop.request_stop();
}

TileScene BlockMap::Impl::makeScene(const MapView& seen) const {
    TileScene made;
    made.dpr = seen.kv.ratio();
    made.colors = mapColors(themeTokens());
    made.scores = content == Content::Score;
    made.map = owner->shownMap();
    if (side == Side::Difference) {
        if (a == nullptr || b == nullptr || !comparable(*a, *b)) {
            made.map = nullptr;
            return made;
        }
        made.other = b;
    }
    if (made.map != nullptr) {
        made.heat = heatOf(*made.map, made.other.get());
        made.kvScale = seen.kv.scale();
        made.qScale = seen.q.scale();
    }
    return made;
}

void BlockMap::Impl::resetView() {
    const MaskMapPtr map = owner->shownMap();
    if (map == nullptr) {
        return;
    }
    view = layOut(*map);
}

MapView BlockMap::Impl::layOut(const MaskMap& map) {
    const double gutter = gutterWidth(map.queries());
    const auto strips = static_cast<int>(map.strips.size());
    const kernels::BlockMaskShape& shape = map.shape();
    const double dpr = owner->devicePixelRatioF();
    const auto fitted = [&] {
        return MapView::whole(shape.queries, shape.keys, shape.queryBlock, shape.keyBlock, layout.map.size(), dpr,
                              linked);
    };
    layout = mapLayout(owner->size(), gutter, strips, {});
    const MapView all = fitted();
    const QSizeF size(static_cast<double>(all.kv.pixels()), static_cast<double>(all.q.pixels()));
    layout = mapLayout(owner->size(), gutter, strips, size / dpr);
    return fitted();
}

void BlockMap::Impl::relayout() {
    const MaskMapPtr map = owner->shownMap();
    if (map == nullptr) {
        baseDirty = true;
        owner->update();
        return;
    }
    layOut(*map);
    view.resize(layout.map.size(), owner->devicePixelRatioF());
    viewMoved();
}

void BlockMap::Impl::viewMoved() {
    const double before = scene.map != nullptr ? scene.kvScale / scene.dpr : 0;
    refresh();
    const double now = owner->pixelsPerToken();
    if (now != before) {
        emit owner->zoomChanged(now);
    }
    emit owner->visibleChanged();
}

void BlockMap::Impl::refresh() {
    baseDirty = true;
    scene = makeScene(view);
    tiles.setScene(scene);
    if (scene.map != nullptr) {
        const MapPicture now = picture();
        const TileBounds bounds = visibleTiles(now);
        std::vector<TileId> wanted;
        for (std::int64_t y = bounds.y0; y < bounds.y1; ++y) {
            for (std::int64_t x = bounds.x0; x < bounds.x1; ++x) {
                wanted.push_back({x, y});
            }
        }
        const auto distance = [&](const TileId& id) {
            return std::abs(2 * id.x + 1 - bounds.x0 - bounds.x1) + std::abs(2 * id.y + 1 - bounds.y0 - bounds.y1);
        };
        std::stable_sort(wanted.begin(), wanted.end(),
                         [&](const TileId& one, const TileId& two) { return distance(one) < distance(two); });
        settledSent = false;
        tiles.want(std::move(wanted));
        if (tiles.complete()) {
            settledSent = true;
            backdrop = {};
        }
        askLens();
        askCorner();
    }
    owner->update();
}

MapPicture BlockMap::Impl::picture() const {
    MapPicture out;
    out.layout = layout;
    out.view = view;
    out.scene = scene;
    out.difference = difference;
    out.cell = cell;
    out.pinned = pinned;
    out.lens = currentLens();
    out.lensCorner = lensCorner;
    return out;
}

void BlockMap::Impl::keepBackdrop() {
    if (empty() || baseImage.isNull()) {
        return;
    }
    const double dpr = baseImage.devicePixelRatio();
    const QRect part(static_cast<int>(std::lround(layout.map.left() * dpr)),
                     static_cast<int>(std::lround(layout.map.top() * dpr)),
                     static_cast<int>(std::lround(layout.map.width() * dpr)),
                     static_cast<int>(std::lround(layout.map.height() * dpr)));
    backdrop.image = base(dpr).copy(part);
    backdrop.image.setDevicePixelRatio(1);
    backdrop.range = owner->visible();
}

void BlockMap::Impl::paintBase(QPainter& painter, const MapPicture& now, const TileSource& source) const {
    const ThemeTokens& t = themeTokens();
    painter.fillRect(QRectF(QPointF(), QSizeF(owner->size())), t.canvas);
    if (now.scene.map == nullptr) {
        QString text = emptyText;
        if (side == Side::Difference && a != nullptr) {
            text = b == nullptr ? BlockMap::tr("No mask B to compare with. Choose one.")
                                : BlockMap::tr("A and B have other lengths or block sizes. Give both the same.");
        }
        drawText(painter, QRectF(QPointF(16, 0), QSizeF(owner->width() - 32, owner->height())), Qt::AlignCenter, text,
                 t.text3, Theme::instance().font(TypeRole::Body));
        return;
    }
    paintTiles(painter, now, source);
    paintRulers(painter, now);
    paintLegend(painter, now);
    paintStrips(painter, now);
    paintColumnLoad(painter, now);
}

const QImage& BlockMap::Impl::base(double dpr) {
    const QSize pixels(static_cast<int>(std::lround(owner->width() * dpr)),
                       static_cast<int>(std::lround(owner->height() * dpr)));
    if (!baseDirty && baseImage.size() == pixels && baseImage.devicePixelRatio() == dpr) {
        return baseImage;
    }
    baseImage = plotCanvas(owner->size(), dpr, themeTokens().canvas);
    QPainter painter(&baseImage);
    const MapPicture now = picture();
    paintBase(painter, now, [this](TileId id) { return tiles.tile(id); });
    if (!backdrop.image.isNull() && !empty()) {
        // Under the tiles that are there: the picture of the zoom before.
        QPainterPath missing;
        const TileBounds bounds = visibleTiles(now);
        for (std::int64_t y = bounds.y0; y < bounds.y1; ++y) {
            for (std::int64_t x = bounds.x0; x < bounds.x1; ++x) {
                if (tiles.tile({x, y}) == nullptr) {
                    missing.addRect(QRectF(static_cast<double>(x * kMapTile - view.kv.origin()) / dpr,
                                           static_cast<double>(y * kMapTile - view.q.origin()) / dpr, kMapTile / dpr,
                                           kMapTile / dpr)
                                        .translated(layout.map.topLeft()));
                }
            }
        }
        painter.setClipRect(layout.map);
        painter.setClipPath(missing, Qt::IntersectClip);
        const MaskRange& range = backdrop.range;
        const QRectF place(QPointF(view.kv.pixelOf(range.kv0), view.q.pixelOf(range.q0)) / dpr + layout.map.topLeft(),
                           QPointF(view.kv.pixelOf(range.kv1), view.q.pixelOf(range.q1)) / dpr + layout.map.topLeft());
        painter.drawImage(place, backdrop.image);
    }
    baseDirty = false;
    return baseImage;
}

void BlockMap::Impl::askLens() {
    if (empty() || !cell) {
        lensStop.request_stop();
        lensJob.cancel();
        asked = {};
        lens.reset();
        return;
    }
    const int pixels = static_cast<int>(std::lround(layout.lensSide * scene.dpr));
    const LensQuestion question = lensQuestion(scene, cell->q, cell->kv, pixels);
    if (question.sameAs(asked)) {
        return;
    }
    asked = question;
    lensStop.request_stop();
    lensStop = base::StopSource();
    lensJob.start([question, stop = lensStop.get_token()] { return answerLens(question, stop); },
                  [this](LensAnswer answer) {
                      lens = std::move(answer);
                      owner->announce();
                      owner->update();
                  });
}

const LensAnswer* BlockMap::Impl::currentLens() const {
    // Until the next answer is there, the last one of the same masks stands: a lens that blinks cannot be read.
    const bool usable = lens && cell && lens->question.scene.map == scene.map &&
                        lens->question.scene.other == scene.other && lens->question.scene.scores == scene.scores &&
                        lens->question.scene.colors == scene.colors && lens->question.side == asked.side;
    return usable ? &*lens : nullptr;
}

void BlockMap::Impl::askDifference() {
    difference.reset();
    differenceStop.request_stop();
    if (a == nullptr || b == nullptr || !comparable(*a, *b)) {
        differenceJob.cancel();
        return;
    }
    differenceStop = base::StopSource();
    differenceJob.start([one = a, two = b, stop = differenceStop.get_token()] { return countAll(*one, *two, stop); },
                        [this](const BlockCounts& counts) {
                            difference = counts;
                            baseDirty = true;
                            owner->update();
                        });
}

void BlockMap::Impl::askCorner() {
    const LensPlace place = lensPlace(layout.map, layout.lensSide, scene, 0);
    cornerJob.start(
        [now = scene, shown = view, size = place.panel.size() * scene.dpr] { return emptiestCorner(now, shown, size); },
        [this](int corner) {
            lensCorner = corner;
            owner->update();
        });
}

} // namespace vitrine::ui
