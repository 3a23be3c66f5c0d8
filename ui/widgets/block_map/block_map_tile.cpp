// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/block_map/block_map_tile.h"

#include <algorithm>
#include <cmath>

#include "base/integers.h"
#include "ui/widgets/block_map/block_map_frame.h"

namespace vitrine::ui {

namespace {

constexpr double kGapFrom = 4;        ///< device pixels of a block that leaves one between blocks
constexpr double kHatchFrom = 3;      ///< of a block whose hatch can be seen
constexpr double kElementGapFrom = 6; ///< of an element, logical
constexpr double kLargeBlock = 24;    ///< logical pixels of a block whose hatch is wider

QRgb blend(QRgb a, QRgb b, double share) {
    const auto part = [share](int x, int y) { return x + static_cast<int>(std::lround((y - x) * share)); };
    return qRgb(part(qRed(a), qRed(b)), part(qGreen(a), qGreen(b)), part(qBlue(a), qBlue(b)));
}

void paintBlocks(const TileScene& scene, std::int64_t left, std::int64_t top, QImage& image,
                 const base::StopToken& stop) {
    const kernels::BlockMaskShape& shape = scene.map->shape();
    const AxisCells across = axisCells(shape.keys, shape.keyBlock, scene.kvScale, left, left + kMapTile);
    const AxisCells down = axisCells(shape.queries, shape.queryBlock, scene.qScale, top, top + kMapTile);
    const BlockGrid grid = countBlocks(*scene.map, scene.other.get(), across.edges, down.edges, stop);
    TilePainter painter(image, left, top, scene.dpr);
    const double blockWidth = scene.kvScale * static_cast<double>(shape.keyBlock);
    const double blockHeight = scene.qScale * static_cast<double>(shape.queryBlock);
    const bool gapX = across.single && blockWidth >= kGapFrom;
    const bool gapY = down.single && blockHeight >= kGapFrom;
    const bool hatched = std::min(blockWidth, blockHeight) >= kHatchFrom;
    const bool exact = across.single && down.single;
    const int pitch = std::min(blockWidth, blockHeight) >= kLargeBlock * scene.dpr ? 2 * kBlockPitch : kBlockPitch;
    for (std::size_t y = 0; y < grid.rows; ++y) {
        for (std::size_t x = 0; x < grid.columns; ++x) {
            const BlockCounts& counts = grid.at(x, y);
            const MapColor color = blockColor(scene, counts);
            if (color.fill == scene.colors.empty) {
                continue; // the ground with its grid
            }
            painter.fill(across.pixels[x], down.pixels[y], across.pixels[x + 1] - (gapX ? 1 : 0),
                         down.pixels[y + 1] - (gapY ? 1 : 0), color, exact && hatched ? pitch : 0,
                         TilePainter::Phase::Box);
        }
    }
}

/// The elements of pixels [begin, begin + kMapTile) of an axis and where each begins.
struct ElementSpan {
    std::int64_t first = 0;
    std::vector<int> pixels; ///< of the edges
    int count() const { return static_cast<int>(pixels.size()) - 1; }
};
ElementSpan elementSpan(std::int64_t length, double scale, std::int64_t begin) {
    ElementSpan span;
    span.first = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(std::floor(static_cast<double>(begin) / scale + 1e-9)), 0, length);
    for (std::int64_t i = span.first;; ++i) {
        const std::int64_t pixel = std::llround(static_cast<double>(i) * scale) - begin;
        // One pixel too many where an element goes on in the next tile: the gap after it is drawn there.
        span.pixels.push_back(static_cast<int>(std::min<std::int64_t>(pixel, kMapTile + 1)));
        if (i >= length || pixel >= kMapTile) {
            return span;
        }
    }
}

void paintElements(const TileScene& scene, std::int64_t left, std::int64_t top, QImage& image,
                   const base::StopToken& stop) {
    const ElementSpan across = elementSpan(scene.map->keys(), scene.kvScale, left);
    const ElementSpan down = elementSpan(scene.map->queries(), scene.qScale, top);
    if (across.count() <= 0 || down.count() <= 0) {
        return;
    }
    const ElementGrid a = elementGrid(*scene.map, down.first, down.count(), across.first, across.count(), stop);
    ElementGrid b;
    if (scene.other != nullptr) {
        b = elementGrid(*scene.other, down.first, down.count(), across.first, across.count(), stop);
    }
    TilePainter painter(image, left, top, scene.dpr);
    const kernels::BlockMaskShape& shape = scene.map->shape();
    const int gap = std::min(scene.kvScale, scene.qScale) >= kElementGapFrom * scene.dpr ? 1 : 0;
    for (int y = 0; y < down.count(); ++y) {
        const bool rowEnds = (down.first + y + 1) % shape.queryBlock == 0;
        for (int x = 0; x < across.count(); ++x) {
            const bool columnEnds = (across.first + x + 1) % shape.keyBlock == 0;
            const MapColor color = elementColor(scene, a, scene.other != nullptr ? &b : nullptr, a.index(x, y));
            painter.fill(across.pixels[base::toIndex(x)], down.pixels[base::toIndex(y)],
                         across.pixels[base::toIndex(x) + 1] - std::max(gap, columnEnds && scene.kvScale > 1 ? 1 : 0),
                         down.pixels[base::toIndex(y) + 1] - std::max(gap, rowEnds && scene.qScale > 1 ? 1 : 0), color,
                         kElementPitch);
        }
    }
}

/// Positions whose scores a tile shows, and the pixels of each: single elements, or one for every pixel.
ElementSpan samplePositions(std::int64_t length, double scale, std::int64_t begin, std::vector<std::int64_t>& out) {
    if (scale >= 1) {
        ElementSpan span = elementSpan(length, scale, begin);
        for (int i = 0; i < span.count(); ++i) {
            out.push_back(span.first + i);
        }
        return span;
    }
    ElementSpan span;
    for (int pixel = 0; pixel < kMapTile; ++pixel) {
        const auto position = static_cast<std::int64_t>((static_cast<double>(begin + pixel) + 0.5) / scale);
        if (position >= length) {
            break;
        }
        span.pixels.push_back(pixel);
        out.push_back(position);
    }
    span.pixels.push_back(static_cast<int>(out.size()));
    return span;
}

void paintScores(const TileScene& scene, std::int64_t left, std::int64_t top, QImage& image,
                 const base::StopToken& stop) {
    std::vector<std::int64_t> keys;
    std::vector<std::int64_t> queries;
    const ElementSpan across = samplePositions(scene.map->keys(), scene.kvScale, left, keys);
    const ElementSpan down = samplePositions(scene.map->queries(), scene.qScale, top, queries);
    if (keys.empty() || queries.empty()) {
        return;
    }
    ScoreGrid grid = scoreGrid(*scene.map, queries, keys, stop);
    if (scene.other != nullptr) {
        const ScoreGrid less = scoreGrid(*scene.other, queries, keys, stop);
        std::transform(grid.values.begin(), grid.values.end(), less.values.begin(), grid.values.begin(),
                       scoreDifference);
    }
    TilePainter painter(image, left, top, scene.dpr);
    for (std::size_t y = 0; y < grid.rows; ++y) {
        for (std::size_t x = 0; x < grid.columns; ++x) {
            painter.fill(across.pixels[x], down.pixels[y], across.pixels[x + 1], down.pixels[y + 1],
                         scoreColor(scene, grid.values[y * grid.columns + x]), kElementPitch);
        }
    }
}

/// Where the rulers' labels stand, as pixels of a tile.
std::vector<int> gridLines(std::int64_t length, double scale, double dpr, std::int64_t begin) {
    std::vector<int> out;
    const std::int64_t step = rulerStep(scale / dpr, kRulerPixels);
    const double pixels = scale * static_cast<double>(step);
    const auto first = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(begin) / pixels));
    for (std::int64_t i = first; i * step < length; ++i) {
        const std::int64_t pixel = std::llround(static_cast<double>(i) * pixels) - begin;
        if (pixel >= kMapTile) {
            break;
        }
        out.push_back(static_cast<int>(std::max<std::int64_t>(pixel, -kMapTile)));
    }
    return out;
}

/// The canvas shows where the map ends.
void paintGround(const TileScene& scene, std::int64_t left, std::int64_t top, QImage& image) {
    image.fill(scene.colors.canvas);
    const auto inside = [](std::int64_t length, double scale, std::int64_t begin) {
        const auto end = static_cast<std::int64_t>(std::ceil(static_cast<double>(length) * scale - 1e-6));
        return static_cast<int>(std::clamp<std::int64_t>(end - begin, 0, kMapTile));
    };
    const int width = inside(scene.map->keys(), scene.kvScale, left);
    const int height = inside(scene.map->queries(), scene.qScale, top);
    TilePainter painter(image, left, top, scene.dpr);
    painter.fill(0, 0, width, height, {scene.colors.empty, scene.colors.empty, Hatch::None}, 0);
    const MapColor line{scene.colors.grid, scene.colors.grid, Hatch::None};
    const int thick = std::max(1, static_cast<int>(std::lround(scene.dpr)));
    for (const int x : gridLines(scene.map->keys(), scene.kvScale, scene.dpr, left)) {
        painter.fill(x, 0, std::min(width, x + thick), height, line, 0);
    }
    for (const int y : gridLines(scene.map->queries(), scene.qScale, scene.dpr, top)) {
        painter.fill(0, y, width, std::min(height, y + thick), line, 0);
    }
}

} // namespace

AxisCells axisCells(std::int64_t length, std::int64_t block, double scale, std::int64_t begin, std::int64_t end) {
    AxisCells cells;
    const std::int64_t blocks = (length + block - 1) / block;
    const double blockPixels = scale * static_cast<double>(block);
    const auto last = static_cast<std::int64_t>(std::ceil(static_cast<double>(length) * scale - 1e-6));
    end = std::min(end, last);
    if (begin >= end) {
        return cells;
    }
    cells.single = blockPixels >= 1;
    if (!cells.single) {
        for (std::int64_t pixel = begin; pixel <= end; ++pixel) {
            const auto edge = static_cast<std::int64_t>(std::ceil(static_cast<double>(pixel) / blockPixels - 1e-9));
            cells.edges.push_back(pixel == last ? blocks : std::min(edge, blocks));
            cells.pixels.push_back(static_cast<int>(pixel - begin));
        }
        return cells;
    }
    const auto pixelOf = [&](std::int64_t edge) {
        // A last block that is cut to less than a pixel has one all the same.
        return std::min<std::int64_t>(std::llround(static_cast<double>(edge) * blockPixels), last - (blocks - edge));
    };
    auto edge = static_cast<std::int64_t>(std::floor(static_cast<double>(begin) / blockPixels));
    while (edge > 0 && pixelOf(edge) > begin) {
        --edge;
    }
    while (edge + 1 < blocks && pixelOf(edge + 1) <= begin) {
        ++edge;
    }
    for (;; ++edge) {
        const std::int64_t pixel = pixelOf(edge);
        cells.edges.push_back(edge);
        cells.pixels.push_back(static_cast<int>(std::min<std::int64_t>(pixel - begin, end - begin + 1)));
        if (pixel >= end || edge == blocks) {
            return cells;
        }
    }
}

TilePainter::TilePainter(QImage& image, std::int64_t left, std::int64_t top, double dpr)
    : image_(image), left_(left), top_(top), dpr_(dpr) {}

void TilePainter::fill(int x0, int y0, int x1, int y1, const MapColor& color, int pitch, Phase phase) {
    const std::int64_t left = phase == Phase::Map ? left_ : -x0;
    const std::int64_t top = phase == Phase::Map ? top_ : -y0;
    x0 = std::max(0, x0);
    y0 = std::max(0, y0);
    x1 = std::min(x1, image_.width());
    y1 = std::min(y1, image_.height());
    const int tile = std::max(2, static_cast<int>(std::lround(pitch * dpr_)));
    const int line = std::max(1, static_cast<int>(std::lround(dpr_)));
    for (int y = y0; y < y1; ++y) {
        auto* out = reinterpret_cast<QRgb*>(image_.scanLine(y));
        if (pitch == 0 || color.hatch == Hatch::None) {
            std::fill(out + x0, out + std::max(x0, x1), color.fill);
            continue;
        }
        const std::int64_t row = top + y;
        const std::int64_t shift = left + (color.hatch == Hatch::BackDiagonal ? row : -row);
        for (int x = x0; x < x1; ++x) {
            const std::int64_t place = ((shift + x) % tile + tile) % tile;
            out[x] = place < line ? color.line : color.fill;
        }
    }
}

MapColor scoreColor(const TileScene& scene, float value) {
    if (std::isinf(value) && value < 0) {
        return maskedColor(scene.colors);
    }
    const QRgb color = heatColor(scene.colors, scene.heat, value);
    return {color, color, Hatch::None};
}

MapColor blockColor(const TileScene& scene, const BlockCounts& counts) {
    const MapColors& colors = scene.colors;
    const MapColor empty{colors.empty, colors.empty, Hatch::None};
    const bool difference = scene.other != nullptr;
    const std::array<MapColor, 4> fills = difference ? std::array{colors.onlyA, colors.onlyB, empty, colors.both}
                                                     : std::array{colors.full, colors.partial, empty, empty};
    std::int64_t all = 0;
    double red = 0;
    double green = 0;
    double blue = 0;
    for (std::size_t kind = 0; kind < counts.size(); ++kind) {
        all += counts[kind];
        if (kind != mask_kind::kEmpty) {
            const auto weight = static_cast<double>(counts[kind]);
            red += weight * qRed(fills[kind].fill);
            green += weight * qGreen(fills[kind].fill);
            blue += weight * qBlue(fills[kind].fill);
        }
    }
    for (std::size_t kind = 0; kind < counts.size(); ++kind) {
        if (counts[kind] == all) {
            return fills[kind];
        }
    }
    const auto computed = static_cast<double>(all - counts[mask_kind::kEmpty]);
    const QRgb mix =
        qRgb(static_cast<int>(red / computed), static_cast<int>(green / computed), static_cast<int>(blue / computed));
    // Paler the less is computed, but a small share is still seen: a thin stripe over a million tokens is what one
    // looks for.
    const QRgb color = blend(colors.empty, mix, 0.3 + 0.7 * computed / static_cast<double>(all));
    return {color, color, Hatch::None};
}

MapColor elementColor(const TileScene& scene, const ElementGrid& a, const ElementGrid* b, std::size_t index) {
    const MapColors& colors = scene.colors;
    const bool inA = a.allowed[index] != 0;
    if (b != nullptr) {
        const bool inB = b->allowed[index] != 0;
        return inA && inB ? colors.both : inA ? colors.onlyA : inB ? colors.onlyB : colors.blockedBy[0];
    }
    const std::uint8_t part = a.part[index];
    if (inA) {
        return part == kNoPart ? colors.full : colors.allowedBy[std::min<std::size_t>(part, kMostMaskOperands - 1)];
    }
    return colors.blockedBy[part == kNoPart ? 0 : std::min<std::size_t>(part, kMostMaskOperands - 1)];
}

QImage mapTile(const TileScene& scene, std::int64_t x, std::int64_t y, const base::StopToken& stop) {
    QImage image(kMapTile, kMapTile, QImage::Format_RGB32);
    const std::int64_t left = x * kMapTile;
    const std::int64_t top = y * kMapTile;
    paintGround(scene, left, top, image);
    if (scene.scores) {
        paintScores(scene, left, top, image, stop);
    } else if (scene.elements()) {
        paintElements(scene, left, top, image, stop);
    } else {
        paintBlocks(scene, left, top, image, stop);
    }
    return image;
}

} // namespace vitrine::ui
