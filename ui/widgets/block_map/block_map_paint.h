// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Draws the parts of a BlockMap around its tiles. Reads a MapPicture and the theme, computes nothing about masks.

#include <QPainter>
#include <functional>
#include <optional>

#include "ui/widgets/block_map/block_map.h"
#include "ui/widgets/block_map/block_map_frame.h"
#include "ui/widgets/block_map/block_map_lens.h"
#include "ui/widgets/block_map/block_map_tiles.h"

namespace vitrine::ui {

/// Everything that painting reads.
struct MapPicture {
    MapLayout layout;
    MapView view;
    TileScene scene;                       ///< scene.map is null where there is nothing to show
    QString empty;                         ///< said then
    std::optional<BlockCounts> difference; ///< blocks by kind, once they are counted
    std::optional<MaskCell> cell;
    bool pinned = false;
    const LensAnswer* lens = nullptr;
    int lensCorner = 0;

    double ratio() const { return view.kv.ratio(); }
    /// Rectangles in logical pixels of the widget.
    QRectF blockRect(std::int64_t row, std::int64_t column) const;
    QRectF elementRect(const MaskCell& cell) const;
    QRectF contentRect() const; ///< of the mask, cut to the map
};

using TileSource = std::function<const QImage*(TileId)>;
struct TileBounds {
    std::int64_t x0 = 0, x1 = 0, y0 = 0, y1 = 0; ///< half open
};
TileBounds visibleTiles(const MapPicture& picture);
void paintTiles(QPainter& painter, const MapPicture& picture, const TileSource& tiles);

/// Hairlines where the rulers' labels stand; tiles have them already.
void paintGrid(QPainter& painter, const MapPicture& picture);
void paintRulers(QPainter& painter, const MapPicture& picture);
void paintLegend(QPainter& painter, const MapPicture& picture);
void paintStrips(QPainter& painter, const MapPicture& picture);
void paintColumnLoad(QPainter& painter, const MapPicture& picture);
/// Bands, the block's frame, tags on the rulers, the lens.
void paintCursor(QPainter& painter, const MapPicture& picture);

/// What the map's legend lists: kinds of blocks with counts, or what decides elements.
std::vector<LegendEntry> mapLegend(const MapPicture& picture);
/// "5 px a block, 128 tokens".
QString mapScaleText(const MapPicture& picture);
/// "0", "512", "2K", "1M".
QString positionText(std::int64_t position);
/// Room for the labels of the q ruler and the names of strips.
double gutterWidth(std::int64_t queries);

} // namespace vitrine::ui
