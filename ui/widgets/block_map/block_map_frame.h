// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the parts of a BlockMap lie, and which positions its axes show. Scales are in device pixels, so that the tiles
// of a zoom level join without seams. Values; any thread.

#include <QRectF>
#include <QSizeF>
#include <cstdint>
#include <vector>

namespace vitrine::ui {

/// One axis of the map: positions 0 .. length, in blocks.
class MapAxis {
public:
    MapAxis() = default;
    /// `extent`: device pixels that there are. Shows everything.
    MapAxis(std::int64_t length, std::int64_t block, double extent, double dpr);

    std::int64_t length() const { return length_; }
    std::int64_t block() const { return block_; }
    std::int64_t blocks() const { return (length_ + block_ - 1) / block_; }
    double scale() const { return scale_; } ///< device pixels a position
    double blockPixels() const { return scale_ * static_cast<double>(block_); }
    std::int64_t origin() const { return origin_; } ///< device pixel of the axis at the left (top) edge
    double extent() const { return extent_; }
    std::int64_t pixels() const; ///< of the whole axis
    bool showsAll() const { return level_ <= 1; }

    double pixelOf(double position) const { return position * scale_ - static_cast<double>(origin_); }
    double positionAt(double pixel) const { return (pixel + static_cast<double>(origin_)) / scale_; }
    double first() const { return positionAt(0); }
    double last() const { return positionAt(extent_); }

    /// 1: everything fits; larger: closer.
    double level() const { return level_; }
    double closest() const { return most_ / fit_; }
    void setLevel(double level, double anchorPosition, double anchorPixel);
    void scrollTo(double positionAtEdge);
    void pan(double pixels);
    void show(double first, double last);
    /// Another number of device pixels, of which `dpr` make a logical one. Shows any part afterwards.
    void setRoom(double extent, double dpr);
    double ratio() const { return dpr_; }
    /// As given, not moved to whole pixels: a picture at another ratio shows the same positions.
    void setExactScale(double scale);
    /// Everything fits at this many device pixels a position; 0: as large as there is room.
    void setFit(double scale);
    double fit() const { return fit_; }
    double roomiest() const; ///< the largest scale at which everything fits

private:
    void clampOrigin();
    void rescale();

    std::int64_t length_ = 1, block_ = 1;
    double extent_ = 1, dpr_ = 1;
    double fit_ = 1, most_ = 1;
    double level_ = 1;
    double scale_ = 1;
    std::int64_t origin_ = 0;
};

/// Both axes. Linked: one level for both.
struct MapView {
    MapAxis kv, q;
    bool linked = true;

    static MapView whole(std::int64_t queries, std::int64_t keys, std::int64_t queryBlock, std::int64_t keyBlock,
                         QSizeF mapSize, double dpr, bool linked);
    void setLinked(bool on);
    void resize(QSizeF mapSize, double dpr);
    void showAll();
    /// Anchors in device pixels of the map.
    void zoom(double factor, QPointF anchor, bool alongKeys = true, bool alongQueries = true);
    void showRange(double q0, double q1, double kv0, double kv1);

    bool elements() const { return kv.scale() >= 1 && q.scale() >= 1; } ///< each has a pixel at least
    bool blocks() const { return kv.blockPixels() >= 1 && q.blockPixels() >= 1; }

private:
    void fitBoth();
};

/// Parts of the widget, in logical pixels; those without room are empty.
struct MapLayout {
    QRectF map, kvRuler, qRuler, legend, load;
    std::vector<QRectF> strips;
    double lensSide = 256;
};
/// `gutter`: what the labels of the q ruler need; `content`: how large all of the mask is, so that the legend stands
/// close below it and the lens is small where it would lie on the mask (empty: as large as there is room).
MapLayout mapLayout(QSizeF size, double gutter, int strips, QSizeF content);

inline constexpr double kRulerPixels = 64; ///< least distance of a ruler's labels, logical
/// Round positions for a ruler, about `wanted` logical pixels apart: powers of two.
std::int64_t rulerStep(double pixelsPerPosition, double wanted);

} // namespace vitrine::ui
