// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/planner/plan_budget.h"

#include <QMouseEvent>
#include <QPainter>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr double kPlanBarTop = 20, kPlanBarHeight = 34, kPlanBraces = 30;

std::uint64_t wholeBytes(double bytes) {
    return static_cast<std::uint64_t>(std::max(bytes, 0.0));
}

/// What lies free between tensors has no name on the bar.
QString nameOfPart(const BudgetShare& part) {
    return part.name.isEmpty() ? PlanBudget::tr("free") : part.name;
}

} // namespace

PlanBudget::PlanBudget(QWidget* parent) : QWidget(parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setMouseTracking(true);
    setAccessibleName(tr("Memory at the peak against the device"));
    connect(&Theme::instance(), &Theme::changed, this, QOverload<>::of(&QWidget::update));
}

void PlanBudget::setPicture(PlanBudgetPicture picture) {
    picture_ = std::move(picture);
    QStringList words;
    for (const BudgetShare& part : picture_.parts) {
        words << nameOfPart(part) + QLatin1Char(' ') + bytesText(part.bytes);
    }
    spoken_ = tr("%1 of %2: %3")
                  .arg(bytesText(picture_.reserved), bytesText(picture_.budget), words.join(QStringLiteral(", ")));
    setAccessibleDescription(spoken_);
    update();
}

void PlanBudget::setBraces(bool on) {
    if (braces_ != on) {
        braces_ = on;
        updateGeometry();
        update();
    }
}

QSize PlanBudget::sizeHint() const {
    return {400, static_cast<int>(kPlanBarTop + kPlanBarHeight + (braces_ ? kPlanBraces : 8))};
}

double PlanBudget::scale() const {
    const double most = static_cast<double>(picture_.reserved) * (1 + picture_.band);
    return std::max({most, static_cast<double>(picture_.budget), 1.0});
}

double PlanBudget::xOf(double bytes) const {
    return std::round(bytes / scale() * (width() - 1));
}

double PlanBudget::drawDevice(QPainter& painter) const {
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Table, true);
    const double x = xOf(static_cast<double>(picture_.budget));
    painter.fillRect(QRectF(std::max(0.0, x - 1), kPlanBarTop - 12, 2, kPlanBarHeight + 20), t.bad);
    const QString words = tr("device %1").arg(gibText(picture_.budget));
    const double room = textWidth(words, strong);
    const double left = x - 6 - room >= 20 ? x - 6 - room : x + 6;
    drawText(painter, QRectF(left, 0, room + 2, 16), Qt::AlignVCenter, words, t.bad, strong);
    return left;
}

void PlanBudget::drawSpare(QPainter& painter) const {
    const ThemeTokens& t = themeTokens();
    const QFont strong = Theme::instance().font(TypeRole::Table, true);
    const auto reserved = static_cast<double>(picture_.reserved), budget = static_cast<double>(picture_.budget);
    const bool fits = reserved <= budget;
    const QRectF room(QPointF(xOf(std::min(reserved, budget)), kPlanBarTop),
                      QPointF(xOf(std::max(reserved, budget)), kPlanBarTop + kPlanBarHeight));
    painter.fillRect(room, fits ? freeHatch(t, 10, deviceRatio(painter))
                                : hatchBrush(Hatch::BackDiagonal, 6, withAlpha(t.bad, 0.6), deviceRatio(painter)));
    const double bytes = std::abs(budget - reserved);
    const QString words = (fits ? tr("%1 to spare") : tr("%1 over")).arg(bytesText(wholeBytes(bytes)));
    const double width = textWidth(words, strong) + 12;
    const double left = fits ? std::max(room.left(), xOf(reserved * (1 + picture_.band)) + 4) : room.left();
    if (room.right() - left > width + 4) {
        const QRectF box((left + room.right() - width) / 2, kPlanBarTop + 9, width, 16);
        painter.fillRect(box, t.panel);
        drawText(painter, box, Qt::AlignCenter, words, fits ? t.good : t.bad, strong);
    }
}

void PlanBudget::drawBand(QPainter& painter, double limit) const {
    if (picture_.band <= 0) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QFont plain = Theme::instance().font(TypeRole::Axis);
    const auto reserved = static_cast<double>(picture_.reserved);
    const double low = reserved * (1 - picture_.band), high = reserved * (1 + picture_.band);
    const double x0 = xOf(low), x1 = std::max(xOf(high), x0 + 3), middle = xOf(reserved);
    painter.fillRect(QRectF(middle, kPlanBarTop, x1 - middle, kPlanBarHeight), t.panel);
    painter.fillRect(QRectF(middle, kPlanBarTop, x1 - middle, kPlanBarHeight),
                     hatchBrush(Hatch::BackDiagonal, 4, t.text2, deviceRatio(painter)));
    painter.setPen(QPen(t.text1, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(x0 + 0.5, kPlanBarTop - 3.5, x1 - x0 - 1, kPlanBarHeight + 7));
    const QString words = tr("error band %1 to %2").arg(gibText(wholeBytes(low)), gibText(wholeBytes(high)));
    const double width = textWidth(words, plain);
    const double right = std::min(x1, limit - 12);
    if (right - width > 16) {
        drawText(painter, QRectF(right - width, 0, width + 2, 16), Qt::AlignVCenter, words, t.text1, plain);
    }
}

void PlanBudget::drawBraces(QPainter& painter) const {
    if (!braces_ || picture_.slope <= 0 || picture_.fixed >= picture_.reserved) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const double y = kPlanBarTop + kPlanBarHeight + 4;
    const double edge = xOf(static_cast<double>(picture_.fixed)), end = xOf(static_cast<double>(picture_.reserved));
    const QString grows =
        tr("grows with context: %1 at %2 B a token")
            .arg(gibText(picture_.reserved - picture_.fixed), countText(std::llround(picture_.slope)));
    const double growsWidth = textWidth(grows, Theme::instance().font(TypeRole::Table)) + 12;
    double free = 0;
    drawBudgetBrace(painter, 0, edge, y, tr("fixed %1").arg(gibText(picture_.fixed)), t.text2, width() - growsWidth,
                    free);
    drawBudgetBrace(painter, edge + 2, end, y, grows, t.text2, width(), free);
}

void PlanBudget::paintEvent(QPaintEvent*) {
    if (picture_.budget == 0) {
        return;
    }
    QPainter painter(this);
    drawText(painter, QRectF(0, 0, 40, 16), Qt::AlignVCenter, QStringLiteral("0"), themeTokens().text3,
             Theme::instance().font(TypeRole::Axis));
    drawBudgetShares(painter, QRectF(0, kPlanBarTop, width() - 1, kPlanBarHeight), picture_.parts, scale(), false);
    drawSpare(painter);
    drawBand(painter, drawDevice(painter));
    drawBraces(painter);
}

void PlanBudget::mouseMoveEvent(QMouseEvent* event) {
    const double bytes = event->position().x() / std::max(1, width() - 1) * scale();
    double end = 0;
    for (const BudgetShare& part : picture_.parts) {
        end += static_cast<double>(part.bytes);
        if (bytes < end) {
            emit readoutChanged(nameOfPart(part) + QStringLiteral(": ") + exactBytesText(part.bytes));
            return;
        }
    }
    emit readoutChanged(spoken_);
}

void PlanBudget::leaveEvent(QEvent*) {
    emit readoutChanged({});
}

} // namespace vitrine::ui
