// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/copy_lane.h"

#include <QPainter>
#include <algorithm>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kCopyRow = 16, kCopyTop = 4, kCopyStep = 18;
constexpr double kLeastCopy = 2, kHatchedCopy = 6;

} // namespace

CopyLane::CopyLane(const QString& title, TimeCursor* time, QWidget* parent) : Lane(title, time, parent) {
    setHeader(false);
    setPlotHeight(kPlotHeight, 0);
}

void CopyLane::setCopies(std::vector<LaneCopy> copies, std::array<QString, 2> words) {
    copies_ = std::move(copies);
    words_ = std::move(words);
    invalidate();
}

QString CopyLane::spoken() const {
    return tr("To the host: %1. Back: %2.").arg(words_[0], words_[1]);
}

QImage CopyLane::paint(const PlotFrame& frame) {
    QImage image = frame.canvas(themeTokens().canvas);
    QPainter painter(&image);
    paintRow(painter, frame, true, kCopyTop);
    paintRow(painter, frame, false, kCopyTop + kCopyStep);
    return image;
}

void CopyLane::paintRow(QPainter& painter, const PlotFrame& frame, bool toHost, double top) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const QRectF plot = frame.plot();
    drawText(painter, QRectF(0, top, frame.gutter - 8, kCopyRow), Qt::AlignRight | Qt::AlignVCenter,
             toHost ? QStringLiteral("D2H") : QStringLiteral("H2D"), t.text2, font);
    painter.fillRect(QRectF(plot.left(), top, plot.width(), kCopyRow), t.band);
    hairline(painter, plot.left(), plot.right(), top + kCopyRow, t.line0);
    const CategoryStyle& style = t.category(base::MemoryCategory::Comm);
    std::vector<Shown> shown;
    for (const LaneCopy& copy : copies_) {
        const double a = plot.left() + axis().x(copy.range.begin);
        const double b = std::max(a + kLeastCopy, plot.left() + axis().x(copy.range.end));
        if (copy.toHost != toHost || b < plot.left() || a > plot.right()) {
            continue;
        }
        const QRectF box = QRectF(a, top + 2, b - a, kCopyRow - 3).intersected(plot);
        if (box.width() >= kHatchedCopy) {
            fillCategory(painter, box, style, frame.dpr);
        } else {
            painter.fillRect(box, style.fill);
        }
        if (copy.waited > 0) {
            painter.setPen(QPen(t.bad, 1));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(box.adjusted(-0.5, -0.5, 0.5, 0.5));
        }
        shown.push_back({a, b, &copy});
    }
    if (!paintLabels(painter, plot, shown, top)) {
        paintWords(painter, plot, shown, words_[toHost ? 0 : 1], top);
    }
}

bool CopyLane::paintLabels(QPainter& painter, const QRectF& plot, const std::vector<Shown>& shown, double top) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    bool labelled = false;
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const LaneCopy& copy = *shown[i].copy;
        const QString text = copy.waited > 0 && !copy.label.isEmpty()
                                 ? tr("%1, waited %2").arg(copy.label, durationText(copy.waited))
                                 : copy.label;
        const double room = (i + 1 < shown.size() ? shown[i + 1].begin : plot.right()) - shown[i].end - 10;
        if (!text.isEmpty() && textWidth(text, font) <= room) {
            drawText(painter, QRectF(shown[i].end + 5, top, room, kCopyRow), Qt::AlignVCenter, text,
                     copy.waited > 0 ? t.bad : t.text2, font);
            labelled = true;
        }
    }
    return labelled;
}

/// After the last copy in sight, or before the first one.
void CopyLane::paintWords(QPainter& painter, const QRectF& plot, const std::vector<Shown>& shown, const QString& words,
                          double top) {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double wide = textWidth(words, font) + 2;
    double left = plot.left() + 8;
    if (!shown.empty() && plot.right() - shown.back().end >= wide + 16) {
        left = shown.back().end + 10;
    } else if (!shown.empty() && shown.front().begin - plot.left() >= wide + 16) {
        left = shown.front().begin - wide - 10;
    } else if (!shown.empty()) {
        return;
    }
    drawText(painter, QRectF(left, top, wide, kCopyRow), Qt::AlignVCenter, words, t.text2, font);
}

} // namespace vitrine::ui
