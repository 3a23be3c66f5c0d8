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
    double first = plot.right(), last = plot.left(); // copies in sight
    std::vector<std::pair<double, const LaneCopy*>> labels;
    std::vector<double> begins;
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
        first = std::min(first, a);
        last = std::max(last, b);
        begins.push_back(a);
        labels.emplace_back(b, &copy);
    }
    bool labelled = false;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const auto& [right, copy] = labels[i];
        const QString text =
            copy->waited > 0 ? tr("%1, waited %2").arg(copy->label, durationText(copy->waited)) : copy->label;
        const double room = (i + 1 < begins.size() ? begins[i + 1] : plot.right()) - right - 10;
        if (!text.isEmpty() && textWidth(text, font) <= room) {
            drawText(painter, QRectF(right + 5, top, room, kCopyRow), Qt::AlignVCenter, text,
                     copy->waited > 0 ? t.bad : t.text2, font);
            labelled = true;
        }
    }
    const QString& words = words_[toHost ? 0 : 1];
    const double wide = textWidth(words, font);
    if (labelled || words.isEmpty()) {
        return;
    }
    if (labels.empty()) {
        drawText(painter, QRectF(plot.left() + 8, top, plot.width() - 16, kCopyRow), Qt::AlignVCenter, words, t.text2,
                 font);
    } else if (plot.right() - last >= wide + 16) {
        drawText(painter, QRectF(last + 10, top, wide + 2, kCopyRow), Qt::AlignVCenter, words, t.text2, font);
    } else if (first - plot.left() >= wide + 16) {
        drawText(painter, QRectF(first - wide - 12, top, wide + 2, kCopyRow), Qt::AlignVCenter, words, t.text2, font);
    }
}

} // namespace vitrine::ui
