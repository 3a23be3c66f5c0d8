// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/block_map/block_map_lens.h"

#include <QCoreApplication>
#include <QPaintEngine>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/integers.h"
#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kPadding = 10, kTitle = 30, kLegendRow = 20, kBelowPicture = 6, kBottom = 8;
constexpr double kEdge = 8;                                  ///< between panel and map
constexpr std::int64_t kMostCounted = std::int64_t{1} << 26; ///< elements of a block whose allowed ones are counted

/// Pixel edges of `count` elements over `side` pixels.
std::vector<int> edges(int count, int side) {
    std::vector<int> out;
    for (int i = 0; i <= count; ++i) {
        out.push_back(static_cast<int>(std::lround(static_cast<double>(i) * side / std::max(1, count))));
    }
    return out;
}

void countDifference(LensAnswer& answer) {
    for (std::size_t i = 0; i < answer.a.allowed.size(); ++i) {
        const bool inA = answer.a.allowed[i] != 0;
        const bool inB = answer.b.allowed[i] != 0;
        answer.both += inA && inB ? 1 : 0;
        answer.onlyA += inA && !inB ? 1 : 0;
        answer.onlyB += !inA && inB ? 1 : 0;
    }
}

ScoreGrid lensScores(const LensQuestion& question, const base::StopToken& stop) {
    std::vector<std::int64_t> queries(base::toIndex(question.rows));
    std::vector<std::int64_t> keys(base::toIndex(question.columns));
    std::iota(queries.begin(), queries.end(), question.query);
    std::iota(keys.begin(), keys.end(), question.key);
    ScoreGrid grid = scoreGrid(*question.scene.map, queries, keys, stop);
    if (question.scene.other != nullptr) {
        const ScoreGrid less = scoreGrid(*question.scene.other, queries, keys, stop);
        std::transform(grid.values.begin(), grid.values.end(), less.values.begin(), grid.values.begin(),
                       scoreDifference);
    }
    return grid;
}

int legendColumns(const QRectF& picture) {
    return picture.width() >= 200 ? 2 : 1;
}

} // namespace

bool LensQuestion::sameAs(const LensQuestion& other) const {
    return scene.map == other.scene.map && scene.other == other.scene.other && scene.scores == other.scene.scores &&
           scene.colors == other.scene.colors && scene.heat == other.scene.heat && scene.dpr == other.scene.dpr &&
           row == other.row && column == other.column && query == other.query && key == other.key && side == other.side;
}

LensQuestion lensQuestion(const TileScene& scene, std::int64_t query, std::int64_t key, int side) {
    const kernels::BlockMaskShape& shape = scene.map->shape();
    LensQuestion question;
    question.scene = scene;
    question.side = side;
    question.row = query / shape.queryBlock;
    question.column = key / shape.keyBlock;
    const auto part = [side](std::int64_t position, std::int64_t block, std::int64_t length, std::int64_t& first) {
        const std::int64_t begin = position / block * block;
        const std::int64_t end = std::min(begin + block, length);
        first = begin;
        if (end - begin > side) {
            // Moves in steps of half the lens, so that it stands still while the pointer moves a little.
            const std::int64_t step = std::max(1, side / 2);
            first = std::clamp(begin + (position - begin) / step * step - step / 2, begin, end - side);
        }
        return static_cast<int>(std::min<std::int64_t>(side, end - first));
    };
    question.rows = part(query, shape.queryBlock, shape.queries, question.query);
    question.columns = part(key, shape.keyBlock, shape.keys, question.key);
    return question;
}

LensAnswer answerLens(const LensQuestion& question, const base::StopToken& stop) {
    LensAnswer answer;
    answer.question = question;
    const TileScene& scene = question.scene;
    answer.a = elementGrid(*scene.map, question.query, question.rows, question.key, question.columns, stop);
    if (scene.other != nullptr) {
        answer.b = elementGrid(*scene.other, question.query, question.rows, question.key, question.columns, stop);
        countDifference(answer);
    }
    if (scene.scores) {
        answer.scores = lensScores(question, stop);
    }
    answer.kind = blockKind(*scene.map, question.row, question.column);
    const kernels::BlockMaskShape& shape = scene.map->shape();
    const bool quick =
        answer.kind != mask_kind::kPartial || scene.map->rows || shape.queryBlock * shape.keyBlock <= kMostCounted;
    if (quick) {
        answer.fill = blockFill(*scene.map, question.row, question.column, stop);
    }
    // Elements are square, but a block of a few rows keeps a quarter of the height.
    const int most = std::max(question.rows, question.columns);
    const auto pixels = [&](int count) {
        const double share = std::max(0.25, static_cast<double>(count) / std::max(1, most));
        return std::max(1, static_cast<int>(std::lround(question.side * share)));
    };
    answer.image = QImage(pixels(question.columns), pixels(question.rows), QImage::Format_RGB32);
    answer.image.setDevicePixelRatio(scene.dpr);
    const std::vector<int> across = edges(question.columns, answer.image.width());
    const std::vector<int> down = edges(question.rows, answer.image.height());
    TilePainter painter(answer.image, 0, 0, scene.dpr);
    for (int y = 0; y < question.rows; ++y) {
        for (int x = 0; x < question.columns; ++x) {
            const std::size_t index = answer.a.index(x, y);
            MapColor color;
            if (scene.scores) {
                color = scoreColor(scene, answer.scores.values[index]);
            } else {
                color = elementColor(scene, answer.a, scene.other != nullptr ? &answer.b : nullptr, index);
            }
            painter.fill(across[base::toIndex(x)], down[base::toIndex(y)], across[base::toIndex(x) + 1],
                         down[base::toIndex(y) + 1], color, kElementPitch);
        }
    }
    return answer;
}

std::vector<LegendEntry> elementLegend(const TileScene& scene) {
    const MapColors& colors = scene.colors;
    const MapColor quiet = colors.blockedBy[0];
    if (scene.other != nullptr) {
        return {{mapText("only A"), colors.onlyA, kElementPitch},
                {mapText("only B"), colors.onlyB, kElementPitch},
                {mapText("both"), colors.both, 0},
                {mapText("neither"), quiet, 0}};
    }
    std::vector<LegendEntry> out;
    const MaskMap& map = *scene.map;
    if (!map.alternatives) {
        out.push_back({mapText("allowed"), colors.full, 0});
    }
    for (std::size_t i = 0; i < map.parts.size(); ++i) {
        out.push_back({map.parts[i].name, map.alternatives ? colors.allowedBy[i] : colors.blockedBy[i], kElementPitch});
    }
    if (map.alternatives) {
        out.push_back({mapText("blocked"), quiet, 0});
    }
    return out;
}

QString elementLegendTitle(const TileScene& scene) {
    if (scene.other != nullptr) {
        return {};
    }
    return scene.map->alternatives ? mapText("allowed by") : mapText("blocked by");
}

void paintDiagonals(QPainter& painter, const QRectF& box, double pitch, const MapColor& color) {
    if (color.hatch == Hatch::None) {
        return;
    }
    QPainterPath lines;
    const double start = box.left() - box.height();
    const int count = static_cast<int>(std::ceil((box.right() - 0.5 - start) / pitch));
    for (int i = 0; i < count; ++i) {
        const double x = start + i * pitch;
        const double first = std::max(0.0, box.left() - x);
        const double last = std::min(box.height(), box.right() - x);
        if (last - first >= 1) {
            lines.moveTo(x + first, box.bottom() - first);
            lines.lineTo(x + last, box.bottom() - last);
        }
    }
    painter.setPen(QPen(QColor(color.line), 1, Qt::SolidLine, Qt::FlatCap));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(lines);
}

void paintLegendSwatch(QPainter& painter, const QRectF& box, const LegendEntry& entry, const QColor& outline) {
    const double dpr = deviceRatio(painter);
    painter.fillRect(box, QColor(entry.color.fill));
    if (entry.pitch > 0 && entry.color.hatch != Hatch::None) {
        if (painter.paintEngine()->type() == QPaintEngine::SVG) {
            paintDiagonals(painter, box, entry.pitch, entry.color);
        } else {
            painter.setBrushOrigin(box.topLeft());
            painter.fillRect(box, hatchBrush(entry.color.hatch, entry.pitch, QColor(entry.color.line), dpr));
            painter.setBrushOrigin(QPointF());
        }
    }
    painter.setPen(QPen(outline, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
}

QStringList lensTitles(const LensAnswer& answer) {
    const QString row = countText(answer.question.row);
    const QString column = countText(answer.question.column);
    const QString place = mapText("Row %1, column %2").arg(row, column);
    if (answer.question.scene.other != nullptr) {
        const QString onlyA = countText(answer.onlyA);
        const QString onlyB = countText(answer.onlyB);
        return {mapText("%1: only A %2, only B %3").arg(place, onlyA, onlyB),
                mapText("%1, %2: A %3, B %4").arg(row, column, onlyA, onlyB), mapText("A %1, B %2").arg(onlyA, onlyB)};
    }
    const QString kind = answer.kind == mask_kind::kFull      ? mapText("full")
                         : answer.kind == mask_kind::kPartial ? mapText("partial")
                                                              : mapText("empty");
    if (answer.fill.elements == 0) {
        return {mapText("%1: %2").arg(place, kind), mapText("%1, %2: %3").arg(row, column, kind), kind};
    }
    const QString of = mapText("%1 of %2").arg(countText(answer.fill.allowed), countText(answer.fill.elements));
    return {mapText("%1: %2, %3").arg(place, kind, of), mapText("%1: %2").arg(place, of),
            mapText("%1: %2").arg(place, kind), mapText("%1, %2: %3").arg(row, column, kind), kind};
}

QString cellText(const LensAnswer* answer, std::int64_t query, std::int64_t key) {
    QString place = mapText("q %1, kv %2").arg(countText(query), countText(key));
    if (answer == nullptr) {
        return place;
    }
    const ElementGrid& grid = answer->a;
    const std::int64_t column = key - grid.key;
    const std::int64_t row = query - grid.query;
    if (column < 0 || row < 0 || column >= grid.columns || row >= grid.rows) {
        return place;
    }
    const std::size_t index = grid.index(static_cast<int>(column), static_cast<int>(row));
    const TileScene& scene = answer->question.scene;
    const bool allowed = grid.allowed[index] != 0;
    QString verdict;
    if (scene.other != nullptr) {
        const bool inB = answer->b.allowed[index] != 0;
        verdict = allowed && inB ? mapText("in both")
                  : allowed      ? mapText("only in A")
                  : inB          ? mapText("only in B")
                                 : mapText("in neither");
    } else {
        const std::uint8_t part = grid.part[index];
        const QString name = part == kNoPart ? QString() : scene.map->parts[part].name;
        verdict = allowed ? (name.isEmpty() ? mapText("allowed") : mapText("allowed by %1").arg(name))
                          : (name.isEmpty() ? mapText("blocked") : mapText("blocked by %1").arg(name));
    }
    if (scene.scores && std::isfinite(answer->scores.values[index])) {
        verdict = mapText("score %1").arg(static_cast<double>(answer->scores.values[index]), 0, 'g', 4);
    }
    return mapText("%1: %2").arg(place, verdict);
}

LensPlace lensPlace(const QRectF& map, double side, const TileScene& scene, int corner) {
    LensPlace place;
    const QRectF picture(0, 0, side, side);
    const auto entries = static_cast<double>(scene.scores ? 0 : elementLegend(scene).size());
    const double rows = std::ceil(entries / legendColumns(picture));
    const double below = kBelowPicture + rows * kLegendRow + kBottom;
    const QSizeF size(side + 2 * kPadding, kTitle + side + below);
    const bool right = corner == 0 || corner == 2;
    const bool top = corner == 0 || corner == 3;
    place.panel = QRectF(QPointF(right ? map.right() - size.width() - kEdge : map.left() + kEdge,
                                 top ? map.top() + 1 : map.bottom() - size.height() - kEdge),
                         size);
    place.panel.moveLeft(std::floor(std::max(map.left(), place.panel.left())));
    place.panel.moveTop(std::floor(std::max(map.top(), place.panel.top())));
    place.picture = QRectF(place.panel.left() + kPadding, place.panel.top() + kTitle, side, side);
    return place;
}

void paintLens(QPainter& painter, const LensPlace& place, const LensAnswer& answer, std::int64_t query,
               std::int64_t key) {
    const ThemeTokens& t = themeTokens();
    const TileScene& scene = answer.question.scene;
    painter.fillRect(place.panel, t.panel);
    painter.setPen(QPen(t.line1, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(place.panel.adjusted(0.5, 0.5, -0.5, -0.5));
    const QRectF titleBox(place.picture.left(), place.panel.top() + 6, place.picture.width() + 4, 18);
    const Theme& theme = Theme::instance();
    const QFont titleFont = theme.font(place.picture.width() >= 200 ? TypeRole::Table : TypeRole::Axis, true);
    const QStringList titles = lensTitles(answer);
    const auto fits = [&](const QString& title) { return textWidth(title, titleFont) <= titleBox.width(); };
    const auto title = std::find_if(titles.begin(), titles.end() - 1, fits);
    drawText(painter, titleBox, Qt::AlignVCenter | Qt::AlignLeft, *title, t.text1, titleFont);
    painter.drawImage(place.picture.topLeft(), answer.image);

    const double width = answer.image.width() / scene.dpr;
    const double height = answer.image.height() / scene.dpr;
    const double cellX = width / std::max(1, answer.question.columns);
    const double cellY = height / std::max(1, answer.question.rows);
    const QPointF middle(place.picture.left() + (static_cast<double>(key - answer.question.key) + 0.5) * cellX,
                         place.picture.top() + (static_cast<double>(query - answer.question.query) + 0.5) * cellY);
    if (QRectF(place.picture.topLeft(), QSizeF(width, height)).contains(middle)) {
        const double half = std::max(4.0, std::max(cellX, cellY) / 2 + 1.5);
        const QColor faint = withAlpha(t.text1, 0.5);
        hairline(painter, place.picture.left(), middle.x() - half, middle.y(), faint);
        plumbline(painter, middle.x(), place.picture.top(), middle.y() - half, faint);
        painter.setPen(QPen(t.text1, 1));
        painter.drawRect(QRectF(std::floor(middle.x() - half) + 0.5, std::floor(middle.y() - half) + 0.5,
                                std::round(2 * half), std::round(2 * half)));
    }
    if (scene.scores) {
        return;
    }
    const std::vector<LegendEntry> entries = elementLegend(scene);
    const int columns = legendColumns(place.picture);
    const QString heading = elementLegendTitle(scene);
    const QFont font = theme.font(TypeRole::Table);
    const double headingWidth =
        columns == 1 || heading.isEmpty() ? 0 : textWidth(heading, theme.font(TypeRole::Axis)) + 8;
    const double wide = (place.picture.width() - headingWidth) / columns;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const auto column = static_cast<double>(i % static_cast<std::size_t>(columns));
        const std::size_t above = i / static_cast<std::size_t>(columns);
        const auto row = static_cast<double>(above);
        const QRectF line(place.picture.left() + column * wide,
                          place.picture.bottom() + kBelowPicture + row * kLegendRow, wide - 8, kLegendRow);
        paintLegendSwatch(painter, QRectF(line.left(), line.top() + 5, 10, 10), entries[i], t.line2);
        drawText(painter, line.adjusted(15, 0, 0, 0), Qt::AlignVCenter, entries[i].text, t.text2, font);
    }
    if (headingWidth > 0) {
        drawText(painter,
                 QRectF(place.picture.right() - headingWidth, place.picture.bottom() + kBelowPicture, headingWidth,
                        kLegendRow),
                 Qt::AlignVCenter | Qt::AlignRight, heading, t.text3, theme.font(TypeRole::Axis));
    }
}

} // namespace vitrine::ui
