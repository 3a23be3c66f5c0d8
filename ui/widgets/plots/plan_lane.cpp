// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/plan_lane.h"

#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kPlanLeft = 63, kHeldWidth = 112, kHeldBlock = 60, kPlanEdge = 12, kLeast = 3, kUnknownWidth = 40;

QFont axisFont(bool bold = false) {
    return Theme::instance().font(TypeRole::Axis, bold);
}

QPen dashedPen(const QColor& color) {
    QPen pen(color, 1);
    pen.setDashPattern({4, 3});
    return pen;
}

QString gib(double value) {
    return QString::number(value, 'f', 2);
}

/// The step of the clock's ruler that gives at most ten marks.
std::int64_t clockStep(std::int64_t span) {
    constexpr std::array<std::int64_t, 11> kMinutes = {1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440};
    constexpr std::int64_t kMinuteMs = 60'000, kMostMarks = 10;
    for (const std::int64_t minutes : kMinutes) {
        if (span / (minutes * kMinuteMs) <= kMostMarks) {
            return minutes * kMinuteMs;
        }
    }
    return span / kMostMarks;
}

} // namespace

PlanLane::PlanLane(QWidget* parent) : ItemPlot(tr("Plan of this machine"), parent) {
    setFixedHeight(kRulerHeight + kPlotHeight);
}

void PlanLane::setPlan(QueuePlan plan) {
    plan_ = std::move(plan);
    forgetCurrentItem();
    invalidate();
}

void PlanLane::setChosen(std::int64_t number) {
    if (std::exchange(chosen_, number) != number) {
        invalidate();
    }
}

const PlanBlock& PlanLane::block(int item) const {
    const auto index = static_cast<std::size_t>(item);
    return index < plan_.blocks.size() ? plan_.blocks[index] : plan_.heldBack[index - plan_.blocks.size()];
}

std::int64_t PlanLane::numberOf(int item) const {
    return item < 0 || item >= itemCount() ? 0 : block(item).number;
}

double PlanLane::axisRight(const QSizeF& size) const {
    return size.width() - kPlanEdge - (plan_.heldBack.empty() ? 0 : kHeldWidth);
}

double PlanLane::x(std::int64_t ms, const QSizeF& size) const {
    const double span = std::max<double>(static_cast<double>(plan_.endMs - plan_.beginMs), 60'000);
    // Air at both ends, so that the clock of now has room.
    const double part = (static_cast<double>(ms - plan_.beginMs) / span * 0.94) + 0.03;
    return kPlanLeft + part * (axisRight(size) - kPlanLeft);
}

double PlanLane::y(double gibibytes, double top, const QSizeF& size) {
    const double height = size.height() - kRulerHeight;
    constexpr double kAboveHighest = 1.12; // labels stand above the highest block
    return size.height() - gibibytes / std::max(top * kAboveHighest, 1e-9) * height;
}

QRectF PlanLane::blockRect(int item, const QSizeF& size) const {
    const PlanBlock& one = block(item);
    const double bottom = size.height(), top = std::round(y(one.peak, plan_.top, size));
    const auto index = static_cast<std::size_t>(item);
    if (index >= plan_.blocks.size()) {
        const double left = axisRight(size) + 28 + static_cast<double>(index - plan_.blocks.size()) * 8;
        return {left, top, kHeldBlock, bottom - top};
    }
    const double left = std::round(x(one.beginMs, size));
    double right = std::round(x(one.endMs, size)) - 1;
    if (one.kind == PlanBlock::Kind::Waiting && !one.known) {
        right = left + kUnknownWidth;
    }
    return {left, top, std::max(right - left, kLeast), bottom - top};
}

QImage PlanLane::picture(const QSizeF& size, double dpr) const {
    QImage image = plotCanvas(size, dpr, themeTokens().canvas);
    QPainter painter(&image);
    paintGrid(painter, size);
    for (int i = 0; i < static_cast<int>(plan_.blocks.size()); ++i) {
        paintBlock(painter, i, size, dpr);
    }
    paintHeldBack(painter, size, dpr);
    paintNow(painter, size);
    return image;
}

void PlanLane::paintGrid(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const double right = axisRight(size);
    const std::int64_t step = clockStep(std::max<std::int64_t>(plan_.endMs - plan_.beginMs, 60'000));
    for (std::int64_t at = (plan_.beginMs / step + 1) * step; at <= plan_.endMs; at += step) {
        const double place = x(at, size);
        plumbline(painter, place, kRulerHeight - 6, kRulerHeight, t.line2);
        constexpr double kNearNow = 44;
        if (std::abs(place - x(plan_.nowMs, size)) > kNearNow) {
            drawText(painter, QRectF(place - 30, 0, 60, 14), Qt::AlignCenter, clockText(at), t.text2, axisFont());
        }
    }
    const double grid = plan_.top > 20 ? 40 : plan_.top > 2 ? 4 : 0.5;
    for (double value = 0; value <= plan_.top; value += grid) {
        const double place = std::round(y(value, plan_.top, size)) - (value == 0 ? 1 : 0);
        hairline(painter, kPlanLeft, right, place, value == 0 ? t.line1 : t.line0);
        drawText(painter, QRectF(0, place - (value == 0 ? 12 : 8), kPlanLeft - 8, 16),
                 Qt::AlignRight | Qt::AlignVCenter, QString::number(value), t.text3, axisFont());
    }
    if (plan_.budget > 0) {
        const double place = std::round(y(plan_.budget, plan_.top, size)) + 0.5;
        QPen pen(t.bad, 1);
        pen.setDashPattern({6, 3});
        painter.setPen(pen);
        painter.drawLine(QPointF(kPlanLeft, place), QPointF(size.width() - kPlanEdge, place));
        const QString words = tr("Budget %1").arg(gib(plan_.budget));
        const double width = textWidth(words, axisFont());
        const QRectF box(kPlanLeft + (right - kPlanLeft) * 0.46 - width / 2 - 4, place - 7, width + 8, 14);
        painter.fillRect(box, t.canvas);
        drawText(painter, box, Qt::AlignCenter, words, t.bad, axisFont());
    }
}

void PlanLane::paintBlock(QPainter& painter, int item, const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    const PlanBlock& one = block(item);
    const QRectF rect = blockRect(item, size);
    const QRectF edge = rect.adjusted(0.5, 0.5, -0.5, -0.5);
    painter.setBrush(Qt::NoBrush);
    QColor ink = t.text1;
    const auto hatched = [&](const QRectF& part) {
        painter.fillRect(part, withAlpha(t.accent, 0.10));
        painter.fillRect(part, hatchBrush(Hatch::BackDiagonal, 6, withAlpha(t.accent, 0.45), dpr));
        painter.setPen(dashedPen(t.accent));
        painter.drawRect(part.adjusted(0.5, 0.5, -0.5, -0.5));
    };
    switch (one.kind) {
    case PlanBlock::Kind::Waiting:
        hatched(rect);
        break;
    case PlanBlock::Kind::Running: {
        const double now = std::clamp(std::round(x(plan_.nowMs, size)), rect.left() + kLeast, rect.right());
        painter.fillRect(QRectF(rect.left(), rect.top(), now - rect.left(), rect.height()), t.accentFill);
        if (rect.right() > now + 1) {
            hatched(QRectF(now, rect.top(), rect.right() - now, rect.height()));
        }
        ink = t.onAccent;
        break;
    }
    case PlanBlock::Kind::Failed: {
        const double held = std::round(y(one.held, plan_.top, size));
        painter.fillRect(QRectF(rect.left(), held, rect.width(), rect.bottom() - held), t.line2);
        const QRectF over(rect.left(), rect.top(), rect.width(), std::max(held - rect.top(), 0.0));
        painter.fillRect(over, hatchBrush(Hatch::ForwardDiagonal, 6, withAlpha(t.bad, 0.55), dpr));
        painter.setPen(t.bad);
        painter.drawRect(over.height() > 2 ? over.adjusted(0.5, 0.5, -0.5, -0.5) : edge);
        break;
    }
    default:
        painter.fillRect(rect, t.pressed);
        painter.setPen(one.kind == PlanBlock::Kind::Rule ? t.warn : t.line2);
        painter.drawRect(edge);
    }
    const QString label = one.known ? runText(one.number) : runText(one.number) + QStringLiteral(" ?");
    const double width = textWidth(label, axisFont());
    if (rect.width() > width + 6) {
        const QRectF words(rect.center().x() - width / 2 - 3, rect.bottom() - 19, width + 6, 14);
        if (one.kind == PlanBlock::Kind::Waiting) {
            painter.fillRect(words, t.canvas);
        }
        drawText(painter, words, Qt::AlignCenter, label, ink, axisFont(one.kind == PlanBlock::Kind::Running));
    }
    if (one.number == chosen_) {
        painter.setPen(QPen(t.text1, 1));
        painter.drawRect(edge);
    }
}

void PlanLane::paintHeldBack(QPainter& painter, const QSizeF& size, double dpr) const {
    if (plan_.heldBack.empty()) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const double left = axisRight(size) + 8;
    plumbline(painter, left, 2, size.height(), t.line1);
    drawText(painter, QRectF(left, 0, kHeldWidth - 8, 16), Qt::AlignCenter, tr("held back"), t.text3, axisFont());
    const auto item = static_cast<int>(plan_.blocks.size()); // the first in front; the others look out behind it
    for (int i = itemCount() - 1; i >= item; --i) {
        const PlanBlock& one = block(i);
        const QRectF rect = blockRect(i, size);
        const double budget = std::max(std::round(y(plan_.budget, plan_.top, size)), rect.top());
        const QRectF under(rect.left(), budget, rect.width(), rect.bottom() - budget);
        painter.fillRect(under, t.canvas);
        painter.fillRect(under, withAlpha(t.line2, 0.14));
        painter.setPen(dashedPen(t.line2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(under.adjusted(0.5, 0.5, -0.5, -0.5));
        if (one.peak > plan_.budget) {
            const QRectF over(rect.left(), rect.top(), rect.width(), budget - rect.top());
            painter.fillRect(over, hatchBrush(Hatch::ForwardDiagonal, 6, withAlpha(t.bad, 0.55), dpr));
            painter.setPen(t.bad);
            painter.drawRect(over.adjusted(0.5, 0.5, -0.5, -0.5));
        }
        if (i == item) {
            const double middle = under.center().y();
            const QString over = plan_.heldBack.size() > 1
                                     ? tr("%1 and %2 more").arg(runText(one.number)).arg(itemCount() - item - 1)
                                     : runText(one.number);
            drawText(painter, QRectF(rect.left() - 20, middle - 16, rect.width() + 40, 16), Qt::AlignCenter, over,
                     t.text1, axisFont());
            drawText(painter, QRectF(rect.left(), middle, rect.width(), 16), Qt::AlignCenter, gib(one.peak), t.text1,
                     axisFont());
            if (one.peak > plan_.budget) {
                drawText(painter, QRectF(left, std::max(rect.top() - 16, 14.0), kHeldWidth - 8, 16), Qt::AlignCenter,
                         tr("%1 over").arg(gib(one.peak - plan_.budget)), t.bad, axisFont(true));
            }
        }
    }
}

void PlanLane::paintNow(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const double place = std::round(x(plan_.nowMs, size));
    const QColor color = plan_.paused ? t.warn : t.accent;
    plumbline(painter, place, kRulerHeight - 4, size.height(), color);
    painter.fillRect(QRectF(place - 19, 1, 38, 16), color);
    drawText(painter, QRectF(place - 19, 1, 38, 16), Qt::AlignCenter, clockText(plan_.nowMs), t.canvas, axisFont(true));
}

int PlanLane::itemAt(QPointF position) const {
    for (int i = 0; i < itemCount(); ++i) {
        if (blockRect(i, size()).adjusted(-1, 0, 1, 0).contains(position)) {
            return i;
        }
    }
    return -1;
}

QString PlanLane::itemText(int item) const {
    const PlanBlock& one = block(item);
    const bool held = static_cast<std::size_t>(item) >= plan_.blocks.size();
    const QString when = held        ? tr("held back")
                         : one.known ? tr("%1 to %2").arg(clockText(one.beginMs), clockText(one.endMs))
                                     : tr("its time is not known");
    return tr("%1 %2: %3, peak %4 GiB").arg(runText(one.number), one.words, when, gib(one.peak));
}

QRectF PlanLane::itemFrame(int item) const {
    return blockRect(item, size());
}

} // namespace vitrine::ui
