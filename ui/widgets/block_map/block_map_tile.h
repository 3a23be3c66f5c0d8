// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One square of the map as an image: pure functions of the masks, the zoom level and the colours, run on worker
// threads.

#include <QImage>
#include <array>
#include <span>
#include <vector>

#include "ui/models/mask_lab/mask_grid.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

inline constexpr int kMapTile = 256; ///< device pixels a side

/// A fill, and the lines over it.
struct MapColor {
    QRgb fill = 0;
    QRgb line = 0;
    Hatch hatch = Hatch::None; ///< BackDiagonal, ForwardDiagonal or none
};

struct MapColors {
    bool operator==(const MapColors& other) const { return name == other.name; }
    QString name; ///< of the theme
    QRgb canvas = 0, empty = 0, grid = 0, bad = 0, masked = 0;
    MapColor full, partial, onlyA, onlyB, both;
    std::array<MapColor, kMostMaskOperands> blockedBy, allowedBy;
    QRgb heatLow = 0, heatHigh = 0, heatNegative = 0;
};
MapColors mapColors(const ThemeTokens& theme);

/// The colour scale of scores.
struct HeatScale {
    double low = 0, high = 0;
    bool signedValues = false; ///< from -high over 0 to high
    friend bool operator==(const HeatScale&, const HeatScale&) = default;
};
QRgb heatColor(const MapColors& colors, const HeatScale& scale, float value);
/// What the mask blocks, where scores are shown.
MapColor maskedColor(const MapColors& colors);

/// Everything that tiles of one zoom level share.
struct TileScene {
    MaskMapPtr map;
    MaskMapPtr other; ///< set: the difference map - other
    bool scores = false;
    double kvScale = 1, qScale = 1; ///< device pixels a position
    double dpr = 1;
    HeatScale heat;
    MapColors colors;

    bool elements() const { return kvScale >= 1 && qScale >= 1; }
    friend bool operator==(const TileScene&, const TileScene&) = default;
};

/// Tile (x, y) covers device pixels [x * kMapTile, (x + 1) * kMapTile) of the whole map. Throws Cancelled.
QImage mapTile(const TileScene& scene, std::int64_t x, std::int64_t y, const base::StopToken& stop = {});

MapColor scoreColor(const TileScene& scene, float value);
/// How a cell of blocks is drawn: in the colour of its kind, or in a mix where several share it.
MapColor blockColor(const TileScene& scene, const BlockCounts& counts);
/// How an element is drawn; `b`: of the difference.
MapColor elementColor(const TileScene& scene, const ElementGrid& a, const ElementGrid* b, std::size_t index);

/// Fills rectangles of an image; hatches run on from tile to tile.
class TilePainter {
public:
    /// `left`, `top`: where the image lies in the whole map, device pixels.
    TilePainter(QImage& image, std::int64_t left, std::int64_t top, double dpr);
    enum class Phase : std::uint8_t { Map, Box };
    /// Pixels [x0, x1) x [y0, y1); `pitch`: logical pixels between the lines of a hatch, 0: none. Lines run on over
    /// neighbours (Map) or begin anew in each box, so that small blocks look alike.
    void fill(int x0, int y0, int x1, int y1, const MapColor& color, int pitch, Phase phase = Phase::Map);

private:
    QImage& image_;
    std::int64_t left_, top_;
    double dpr_;
};
inline constexpr int kBlockPitch = 4, kElementPitch = 6;

/// What lies between two device pixels of an axis: cells, each of one or more blocks.
struct AxisCells {
    std::vector<std::int64_t> edges; ///< blocks; one more than cells
    std::vector<int> pixels;         ///< of the edges, from `begin`
    bool single = false;             ///< a cell is a block
};
AxisCells axisCells(std::int64_t length, std::int64_t block, double scale, std::int64_t begin, std::int64_t end);

} // namespace vitrine::ui
