// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The longest context of each set of techniques as bars under the curves.
#include <QPainter>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/views/planner/plan_curves.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr int kLimitBar = 15, kLimitGap = 4, kLimitAir = 6;

QRectF limitBarRect(const PlanPicture& picture, int item, double width) {
    const PlanAxis axis{width, picture.axisTop};
    const double right = axis.xOf(static_cast<double>(picture.curves[static_cast<std::size_t>(item)].longest));
    return {PlanAxis::kLeft, static_cast<double>(kLimitAir + item * (kLimitBar + kLimitGap)),
            std::max(1.0, right - PlanAxis::kLeft), kLimitBar};
}

} // namespace

LimitBars::LimitBars(QWidget* parent) : ItemPlot(tr("Longest context that fits"), parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void LimitBars::setPicture(const PlanPicture& picture) {
    const bool other = picture.curves.size() != picture_.curves.size();
    picture_ = picture;
    if (other) {
        forgetCurrentItem();
        updateGeometry();
    }
    invalidate();
}

QSize LimitBars::sizeHint() const {
    return {600, 2 * kLimitAir + std::max(1, itemCount()) * (kLimitBar + kLimitGap) - kLimitGap};
}

QImage LimitBars::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QFont font = Theme::instance().font(TypeRole::Table), strong = Theme::instance().font(TypeRole::Table, true);
    const std::int64_t first = picture_.curves.empty() ? 0 : picture_.curves.front().longest;
    for (int i = 0; i < itemCount(); ++i) {
        const PlanCurve& curve = picture_.curves[static_cast<std::size_t>(i)];
        const QRectF bar = limitBarRect(picture_, i, size.width());
        drawSetNumber(painter, {PlanAxis::kLeft - 25, bar.top()}, static_cast<std::size_t>(i), curve.chosen);
        painter.fillRect(bar, curve.chosen ? t.selection : t.pressed);
        painter.setPen(curve.chosen ? t.accent : t.line2);
        painter.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5));
        const double nameWidth = textWidth(curve.name, font) + 4;
        const bool inside = nameWidth + 12 < bar.width();
        double x = bar.right() + 8;
        const auto put = [&](const QString& text, const QColor& color, const QFont& with) {
            const double width = textWidth(text, with) + 4;
            drawText(painter, QRectF(x, bar.top() - 1, width, kLimitBar + 2), Qt::AlignVCenter, text, color, with);
            x += width + 6;
        };
        if (inside) {
            drawText(painter, QRectF(bar.left() + 8, bar.top() - 1, nameWidth, kLimitBar + 2), Qt::AlignVCenter,
                     curve.name, t.text1, font);
        } else {
            put(curve.name, t.text1, font);
        }
        put(curve.longest > 0 ? countText(curve.longest) : tr("none"), curve.chosen ? t.accent : t.text1, strong);
        if (first > 0 && curve.longest > 0) {
            put(ratioText(static_cast<double>(curve.longest) / static_cast<double>(first)), t.text2, font);
        }
    }
    return image;
}

int LimitBars::itemAt(QPointF position) const {
    for (int i = 0; i < itemCount(); ++i) {
        const QRectF bar = limitBarRect(picture_, i, width());
        if (position.y() >= bar.top() - 2 && position.y() <= bar.bottom() + 2) {
            return i;
        }
    }
    return -1;
}

QString LimitBars::itemText(int item) const {
    const PlanCurve& curve = picture_.curves[static_cast<std::size_t>(item)];
    return tr("Set %1, %2: %3 tokens fit").arg(item + 1).arg(curve.name, countText(curve.longest));
}

QRectF LimitBars::itemFrame(int item) const {
    return limitBarRect(picture_, item, width());
}

} // namespace vitrine::ui
