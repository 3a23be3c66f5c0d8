// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Whole pictures of the map: for renderings, PNG and SVG. Here tiles are made on the spot.

#include <QPainterPath>
#include <QSaveFile>
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/block_map/block_map_impl.h"
#include "ui/widgets/plots/vector_picture.h"

namespace vitrine::ui {

namespace {

constexpr double kLargestScale = 8;
constexpr std::int64_t kMostVectors = 20'000; ///< shapes of an SVG; beyond, the map in it is an image

/// Neighbouring cells of a row that look alike.
struct CellRun {
    std::size_t first = 0, end = 0, row = 0;
    MapColor color;
};

/// The blocks in view as runs; nothing when they are too many, or are not drawn one by one.
std::vector<CellRun> vectorRuns(const MapPicture& picture, const AxisCells& across, const AxisCells& down) {
    const TileScene& scene = picture.scene;
    std::vector<CellRun> runs;
    if (scene.scores || scene.elements() || !across.single || !down.single) {
        return runs;
    }
    const BlockGrid grid = countBlocks(*scene.map, scene.other.get(), across.edges, down.edges);
    for (std::size_t y = 0; y < grid.rows; ++y) {
        for (std::size_t x = 0; x < grid.columns; ++x) {
            const MapColor color = blockColor(scene, grid.at(x, y));
            if (color.fill == scene.colors.empty) {
                continue;
            }
            if (!runs.empty() && runs.back().row == y && runs.back().end == x && runs.back().color.fill == color.fill) {
                runs.back().end = x + 1;
            } else {
                runs.push_back({x, x + 1, y, color});
            }
            if (static_cast<std::int64_t>(runs.size()) > kMostVectors) {
                return {};
            }
        }
    }
    return runs;
}

/// The map as shapes; false when it must be an image.
bool paintVectors(QPainter& painter, const MapPicture& picture) {
    const MapView& view = picture.view;
    const double ratio = picture.ratio();
    const auto cellsOf = [](const MapAxis& axis) {
        return axisCells(axis.length(), axis.block(), axis.scale(), axis.origin(),
                         axis.origin() + static_cast<std::int64_t>(std::ceil(axis.extent())));
    };
    const AxisCells across = cellsOf(view.kv);
    const AxisCells down = cellsOf(view.q);
    const std::vector<CellRun> runs = vectorRuns(picture, across, down);
    if (runs.empty()) {
        return false;
    }
    const QPointF corner = picture.layout.map.topLeft();
    const MapColors& colors = picture.scene.colors;
    painter.save();
    painter.setClipRect(picture.layout.map);
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.fillRect(picture.contentRect(), QColor(colors.empty));
    paintGrid(painter, picture);
    for (const CellRun& run : runs) {
        const QRectF box(QPointF(across.pixels[run.first], down.pixels[run.row]) / ratio + corner,
                         QPointF(across.pixels[run.end], down.pixels[run.row + 1]) / ratio + corner);
        painter.fillRect(box, QColor(run.color.fill));
        const double cell = view.kv.blockPixels() / ratio;
        if (box.height() >= 3) {
            paintDiagonals(painter, box, cell < 24 ? cell : 2 * kBlockPitch, run.color);
        }
    }
    if (view.kv.blockPixels() >= 4 && view.q.blockPixels() >= 4) {
        const QRectF content = picture.contentRect();
        painter.setPen(Qt::NoPen);
        for (std::size_t i = 1; i < across.pixels.size(); ++i) {
            painter.fillRect(
                QRectF(corner.x() + (across.pixels[i] - 1) / ratio, content.top(), 1 / ratio, content.height()),
                QColor(colors.empty));
        }
        for (std::size_t i = 1; i < down.pixels.size(); ++i) {
            painter.fillRect(
                QRectF(content.left(), corner.y() + (down.pixels[i] - 1) / ratio, content.width(), 1 / ratio),
                QColor(colors.empty));
        }
    }
    painter.restore();
    return true;
}

} // namespace

MapPicture BlockMap::Impl::pictureAt(double dpr) const {
    MapPicture out = picture();
    if (empty()) {
        return out;
    }
    const MaskRange range = owner->visible();
    const double ratio = dpr / view.kv.ratio();
    const auto scaled = [&](MapAxis& axis, double first) {
        const double wanted = axis.scale() * ratio;
        axis.setRoom(axis.extent() * ratio, dpr);
        axis.setExactScale(wanted);
        axis.scrollTo(first);
    };
    if (ratio != 1) {
        scaled(out.view.kv, range.kv0);
        scaled(out.view.q, range.q0);
        out.scene = makeScene(out.view);
        out.lens = nullptr;
    }
    return out;
}

void BlockMap::Impl::paintComplete(QPainter& painter, double dpr, bool withCursor) const {
    MapPicture whole = pictureAt(dpr);
    if (whole.scene.other != nullptr && !whole.difference) {
        whole.difference = countAll(*whole.scene.map, *whole.scene.other, {});
    }
    std::map<TileId, QImage> made;
    paintBase(painter, whole, [&](TileId id) -> const QImage* {
        const QImage* there = whole.scene == tiles.scene() ? tiles.tile(id) : nullptr;
        if (there != nullptr) {
            return there;
        }
        return &made.try_emplace(id, mapTile(whole.scene, id.x, id.y)).first->second;
    });
    if (withCursor) {
        paintCursorNow(painter, whole);
    }
}

void BlockMap::Impl::paintCursorNow(QPainter& painter, MapPicture& whole) const {
    if (whole.scene.map == nullptr || !cell) {
        return;
    }
    LensAnswer answer;
    const int lensPixels = static_cast<int>(std::lround(layout.lensSide * whole.scene.dpr));
    const LensQuestion question = lensQuestion(whole.scene, cell->q, cell->kv, lensPixels);
    if (whole.lens == nullptr || !whole.lens->question.sameAs(question)) {
        answer = answerLens(question, {});
        whole.lens = &answer;
    }
    paintCursor(painter, whole);
    whole.lens = nullptr; // it may be the answer of this call
}

QImage BlockMap::picture(double scale) const {
    const double dpr = std::clamp(scale, 0.5, kLargestScale);
    QImage image = plotCanvas(size(), dpr, themeTokens().canvas);
    QPainter painter(&image);
    impl_->paintComplete(painter, dpr, impl_->pinned);
    return image;
}

QByteArray BlockMap::svg() const {
    return vectorPicture(size(), impl_->empty() ? title() : impl_->scene.map->name, spoken(),
                         [this](QPainter& painter) { impl_->paintVectors(painter); });
}

void BlockMap::Impl::paintVectors(QPainter& painter) const {
    MapPicture whole = pictureAt(view.kv.ratio());
    std::map<TileId, QImage> made;
    bool shapes = false;
    paintBase(painter, whole, [&](TileId id) -> const QImage* {
        if (made.empty() && !shapes) {
            shapes = ui::paintVectors(painter, whole);
        }
        if (shapes) {
            return nullptr;
        }
        return &made.try_emplace(id, mapTile(whole.scene, id.x, id.y)).first->second;
    });
    if (pinned) {
        paintCursorNow(painter, whole);
    }
}

void BlockMap::savePng(const QString& path, double scale) const {
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly) || !picture(scale).save(&file, "PNG") || !file.commit()) {
        throw base::BadInput(path.toStdString() + ": picture: cannot be written; choose another folder");
    }
}

void BlockMap::saveSvg(const QString& path) const {
    const QByteArray text = svg();
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size() || !file.commit()) {
        throw base::BadInput(path.toStdString() + ": picture: cannot be written; choose another folder");
    }
}

} // namespace vitrine::ui
