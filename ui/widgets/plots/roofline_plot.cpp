// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/roofline_plot.h"

#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

namespace {

constexpr double kRooflineMargin = 12, kNames = 66, kTimes = 66;
constexpr double kRooflineBar = 14, kBarStep = 20, kRooflineRow = 20, kHead = 18;
constexpr double kTable = 2 * kBarStep + 4; ///< where the table begins
constexpr double kSwatch = 12;

QString timeText(double seconds) {
    return durationText(static_cast<base::TimeNs>(std::llround(seconds * 1e9)));
}

} // namespace

RooflinePlot::RooflinePlot(QWidget* parent) : ItemPlot(tr("Decode roofline"), parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setFixedHeight(sizeHint().height());
}

void RooflinePlot::setFacts(profiler::RooflineSummary facts) {
    facts_ = std::move(facts);
    forgetCurrentItem();
    setFixedHeight(sizeHint().height());
    invalidate();
}

QSize RooflinePlot::sizeHint() const {
    return {320, static_cast<int>(kTable + kHead + kRooflineRow * static_cast<double>(facts_.parts.size())) + 4};
}

QRectF RooflinePlot::barRect(int row, double seconds, double width) const {
    const double room = std::max(20.0, width - 2 * kRooflineMargin - kNames - kTimes);
    const double longest = std::max(facts_.floorSeconds, facts_.seconds);
    return {kRooflineMargin + kNames, row * kBarStep + 3, longest > 0 ? std::round(seconds / longest * room) : 0,
            kRooflineBar};
}

QRectF RooflinePlot::pieceRect(std::size_t part, double width) const {
    double before = 0;
    for (std::size_t i = 0; i < part; ++i) {
        before += facts_.parts[i].floorSeconds;
    }
    const double left = barRect(0, before, width).right();
    QRectF rect = barRect(0, before + facts_.parts[part].floorSeconds, width);
    rect.setLeft(left);
    return rect;
}

QRectF RooflinePlot::rowRect(std::size_t part, double width) const {
    return {kRooflineMargin, kTable + kHead + kRooflineRow * static_cast<double>(part), width - 2 * kRooflineMargin,
            kRooflineRow};
}

QImage RooflinePlot::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.panel);
    QPainter painter(&image);
    const QFont axis = Theme::instance().font(TypeRole::Axis), table = Theme::instance().font(TypeRole::Table);
    const auto caption = [&](int row, const QString& name, double seconds) {
        const QRectF bar = barRect(row, seconds, size.width());
        drawText(painter, QRectF(kRooflineMargin, bar.top() - 2, kNames - 8, kRooflineBar + 4), Qt::AlignVCenter, name,
                 t.text2, axis);
        drawText(painter, QRectF(size.width() - kRooflineMargin - kTimes, bar.top() - 2, kTimes, kRooflineBar + 4),
                 Qt::AlignRight | Qt::AlignVCenter, timeText(seconds), t.text1, axis);
    };
    caption(0, tr("at least"), facts_.floorSeconds);
    caption(1, tr("measured"), facts_.seconds);
    painter.fillRect(barRect(1, facts_.seconds, size.width()), t.line2);
    const double right = size.width() - kRooflineMargin;
    const double columns[] = {right - 2 * 70, right - 70, right}; // right edges of bytes, share and time
    const auto cell = [&](int column, double y, double height, const QString& text, const QColor& color,
                          const QFont& font) {
        drawText(painter, QRectF(columns[column] - 90, y, 90, height), Qt::AlignRight | Qt::AlignVCenter, text, color,
                 font);
    };
    cell(0, kTable, kHead, tr("a token reads"), t.text3, axis);
    cell(1, kTable, kHead, tr("share"), t.text3, axis);
    cell(2, kTable, kHead, tr("at least"), t.text3, axis);
    for (std::size_t i = 0; i < facts_.parts.size(); ++i) {
        const profiler::RooflineTerm& part = facts_.parts[i];
        const CategoryStyle style = layerStyle({textOf(part.name), static_cast<int>(part.category), part.tone}, t);
        const QRectF piece = pieceRect(i, size.width());
        fillCategory(painter, piece, style, dpr);
        if (i > 0 && piece.width() >= 2) {
            painter.fillRect(QRectF(piece.left(), piece.top(), 1, piece.height()), withAlpha(t.canvas, 0.6));
        }
        const QRectF row = rowRect(i, size.width());
        drawSwatch(painter, QRectF(row.left(), row.top() + (kRooflineRow - kSwatch) / 2, kSwatch, kSwatch), style);
        drawText(painter, row.adjusted(kSwatch + 8, 0, -3 * 70, 0), Qt::AlignVCenter, textOf(part.name), t.text1,
                 table);
        cell(0, row.top(), kRooflineRow, bytesText(static_cast<std::uint64_t>(std::llround(part.bytes))), t.text1,
             table);
        cell(1, row.top(), kRooflineRow, shareText(part.share), t.text2, table);
        cell(2, row.top(), kRooflineRow, timeText(part.floorSeconds), t.text2, table);
    }
    return image;
}

QString RooflinePlot::itemText(int item) const {
    const profiler::RooflineTerm& part = facts_.parts[static_cast<std::size_t>(item)];
    return tr("%1: %2 for a token, %3 of the bytes, at least %4")
        .arg(textOf(part.name), exactBytesText(static_cast<std::uint64_t>(std::llround(part.bytes))),
             shareText(part.share), timeText(part.floorSeconds));
}

QString RooflinePlot::spoken() const {
    if (currentItem() >= 0) {
        return itemText(currentItem());
    }
    return facts_.parts.empty() ? QString()
                                : tr("A token takes %1, at least %2. %3")
                                      .arg(timeText(facts_.seconds), timeText(facts_.floorSeconds),
                                           textOf(profiler::rooflineSentence(facts_)));
}

int RooflinePlot::itemAt(QPointF position) const {
    for (std::size_t i = 0; i < facts_.parts.size(); ++i) {
        if (rowRect(i, width()).contains(position) || pieceRect(i, width()).contains(position)) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

QRectF RooflinePlot::itemFrame(int item) const {
    return rowRect(static_cast<std::size_t>(item), width()).adjusted(-5.5, 0.5, 5.5, -0.5);
}

} // namespace vitrine::ui
