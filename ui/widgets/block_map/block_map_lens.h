// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The lens of the map: one block at the level of elements, with what decides each. Made on a worker; values.

#include <QCoreApplication>
#include <QPainter>
#include <optional>

#include "ui/widgets/block_map/block_map_tile.h"

namespace vitrine::ui {

/// A text of the block map in the user's language.
inline QString mapText(const char* text) {
    return QCoreApplication::translate("BlockMap", text);
}

struct LensQuestion {
    TileScene scene;                  ///< its zoom does not count
    std::int64_t row = 0, column = 0; ///< block
    std::int64_t query = 0, key = 0;  ///< first element that is shown; a large block is shown in part
    int rows = 0, columns = 0;
    int side = 256; ///< device pixels

    bool sameAs(const LensQuestion& other) const;
};
/// The block around an element, or the part of it that fits into `side` pixels.
LensQuestion lensQuestion(const TileScene& scene, std::int64_t query, std::int64_t key, int side);

struct LensAnswer {
    LensQuestion question;
    QImage image;
    ElementGrid a, b; ///< b: of the difference
    ScoreGrid scores; ///< of score mode
    BlockFill fill;   ///< of the shown mask; of the difference: of A; no elements: too many to count
    std::size_t kind = mask_kind::kEmpty;
    std::int64_t onlyA = 0, onlyB = 0, both = 0; ///< elements in the shown part
};
/// Throws Cancelled.
LensAnswer answerLens(const LensQuestion& question, const base::StopToken& stop);

/// One colour of a legend.
struct LegendEntry {
    QString text;
    MapColor color;
    int pitch = 0; ///< of its hatch
};
/// What the colours of single elements mean.
std::vector<LegendEntry> elementLegend(const TileScene& scene);
/// "blocked by" or "allowed by", said beside that legend; empty for a difference.
QString elementLegendTitle(const TileScene& scene);
/// The hatch of a box as lines, for SVG, which has no textures of ours.
void paintDiagonals(QPainter& painter, const QRectF& box, double pitch, const MapColor& color);
/// The swatch of a legend, outlined where its colour is close to the ground.
void paintLegendSwatch(QPainter& painter, const QRectF& box, const LegendEntry& entry, const QColor& outline);

/// "Row 64, column 64: partial, 4,196 of 16,384", then shorter forms for narrow lenses.
QStringList lensTitles(const LensAnswer& answer);
/// "q 8,284, kv 8,220: blocked by document" of an element of the lens; without the verdict outside it.
QString cellText(const LensAnswer* answer, std::int64_t query, std::int64_t key);

/// Panel with title, picture and legend.
struct LensPlace {
    QRectF panel, picture;
};
/// `corner`: 0 upper right, 1 lower left, 2 lower right, 3 upper left of `map`.
LensPlace lensPlace(const QRectF& map, double side, const TileScene& scene, int corner);
void paintLens(QPainter& painter, const LensPlace& place, const LensAnswer& answer, std::int64_t query,
               std::int64_t key);

} // namespace vitrine::ui
