// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/phase_plot.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/memory_totals.h"
#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

namespace {

constexpr int kPoints = 160;         // over the whole plot
constexpr double kFarFromZero = 0.6; ///< of the scale
constexpr double kGutterWidth = 52, kTitleHeight = 22, kFootHeight = 18;

/// 1, 2 or 5 times a power of ten of a unit, at least `wanted` bytes.
std::uint64_t roundStep(double wanted, std::uint64_t unit) {
    const double units = std::max(wanted / static_cast<double>(unit), 1e-3);
    const double power = std::pow(10.0, std::floor(std::log10(units)));
    const double times = units <= power ? 1 : units <= 2 * power ? 2 : units <= 5 * power ? 5 : 10;
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(times * power * static_cast<double>(unit)));
}

} // namespace

PhasePlot::PhasePlot(QWidget* parent) : QWidget(parent) {
    setAccessibleName(tr("Total by phase"));
    connect(&Theme::instance(), &Theme::changed, this, QOverload<>::of(&QWidget::update));
}

void PhasePlot::setFailure(TimelinePtr timeline, const OomSummary& facts) {
    timeline_ = std::move(timeline);
    facts_ = facts;
    phases_.clear();
    if (timeline_) {
        phases_ = profiler::phasePairs(*timeline_, facts, kPoints);
    }
    if (!phases_.empty()) {
        const profiler::ScopeRow* now = facts.step != nullptr ? facts.step : facts.before;
        const profiler::ScopeRow* before = profiler::stepBefore(*timeline_, *now);
        stepNow_ = textOf(profiler::scopeTitle(*timeline_, *now, false));
        stepBefore_ = before != nullptr ? textOf(profiler::scopeTitle(*timeline_, *before, false)) : QString();
    }
    setVisible(!phases_.empty());
    update();
}

std::uint64_t PhasePlot::lowestValue() const {
    std::uint64_t lowest = facts_.event.budget;
    for (const profiler::PhasePair& phase : phases_) {
        for (const auto* values : {&phase.now, &phase.before}) {
            for (const std::uint64_t value : *values) {
                lowest = std::min(lowest, value);
            }
        }
    }
    return lowest;
}

/// The totals of both steps over their phases. Returns where the line of the step that failed ends.
QPointF PhasePlot::drawTotals(QPainter& painter, const QRectF& plot, const std::function<double(double)>& yOf) const {
    const ThemeTokens& t = themeTokens();
    QPointF lastNow;
    for (const bool now : {false, true}) {
        QPolygonF line;
        for (const profiler::PhasePair& phase : phases_) {
            const std::vector<std::uint64_t>& values = now ? phase.now : phase.before;
            const std::size_t longest = std::max(phase.now.size(), phase.before.size());
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double place =
                    phase.from + (phase.to - phase.from) * static_cast<double>(i) / static_cast<double>(longest);
                line << QPointF(plot.left() + place * plot.width(), yOf(static_cast<double>(values[i])));
            }
        }
        painter.setPen(QPen(now ? t.accent : t.text3, now ? 1.5 : 1));
        painter.drawPolyline(line);
        lastNow = line.isEmpty() ? QPointF() : line.back();
    }
    return lastNow;
}

/// What was asked for, on top of what was held: the line has what tensors had of it.
void PhasePlot::drawAsked(QPainter& painter, const QPointF& lastNow, double held, double asked) const {
    const ThemeTokens& t = themeTokens();
    painter.setPen(QPen(t.text3, 1));
    painter.drawLine(lastNow, QPointF(lastNow.x(), held));
    QPen up(t.bad, 1.5);
    up.setDashPattern({2, 2});
    painter.setPen(up);
    painter.drawLine(QPointF(lastNow.x(), held), QPointF(lastNow.x(), asked - 2));
    painter.setPen(QPen(t.bad, 1.5));
    painter.drawPolyline(
        QPolygonF({{lastNow.x() - 3, asked + 2}, {lastNow.x(), asked - 2}, {lastNow.x() + 3, asked + 2}}));
}

void PhasePlot::drawPhaseNames(QPainter& painter, const QRectF& plot) const {
    const ThemeTokens& t = themeTokens();
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    LabelPlaces places;
    for (const profiler::PhasePair& phase : phases_) {
        const double x = plot.left() + phase.from * plot.width();
        if (phase.from > 0) {
            plumbline(painter, x, plot.top(), plot.bottom(), t.line1);
        }
        const QString name = textOf(profiler::scopeTitle(*timeline_, phase.phase, false));
        const double w = textWidth(name, axis);
        const QRectF box(std::min(x + 3, plot.right() - w), plot.bottom() + 2, w + 1, 14);
        if (places.take(box)) {
            drawText(painter, box, Qt::AlignVCenter, name, t.text3, axis);
        }
    }
}

void PhasePlot::paintEvent(QPaintEvent*) {
    if (phases_.empty()) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QFont axis = Theme::instance().font(TypeRole::Axis), table = Theme::instance().font(TypeRole::Table);
    const QFont strong = Theme::instance().font(TypeRole::Table, true);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF plot(kGutterWidth, kTitleHeight + 8, width() - kGutterWidth - 8,
                      height() - kTitleHeight - kFootHeight - 8);
    const std::uint64_t needed = std::max(facts_.event.budget, facts_.event.reserved + facts_.event.requested);
    const ByteGrid unit = byteGrid(needed, 5);
    // Lines that all lie near the top are distinguished by a scale that begins below them, not at zero.
    const std::uint64_t lowest = lowestValue();
    const bool far = static_cast<double>(lowest) > kFarFromZero * static_cast<double>(needed);
    const std::uint64_t step = far ? roundStep(static_cast<double>(needed - std::min(needed, lowest)) / 3, unit.unit)
                                   : std::max<std::uint64_t>(1, unit.step);
    const std::uint64_t base = far ? lowest / step * step : 0;
    const double top = static_cast<double>(std::max(needed, base + 1)) * 1.01;
    const QString unitName = QString::fromLatin1(unit.unitName);
    const auto number = [&](std::uint64_t bytes) {
        return QString::number(static_cast<double>(bytes) / static_cast<double>(unit.unit), 'g', 4);
    };
    drawText(painter, QRectF(0, 0, width(), 16), Qt::AlignVCenter,
             far ? tr("Total, %1 from %2").arg(unitName, number(base)) : tr("Total by phase, %1").arg(unitName),
             t.text2, table);
    const auto yOf = [&](double bytes) {
        const double part = (bytes - static_cast<double>(base)) / (top - static_cast<double>(base));
        return plot.bottom() - std::clamp(part, 0.0, 1.0) * plot.height();
    };
    for (std::uint64_t tick = base; static_cast<double>(tick) <= top; tick += step) {
        const double y = yOf(static_cast<double>(tick));
        hairline(painter, plot.left(), plot.right(), std::min(y, plot.bottom() - 1), t.line0);
        drawText(painter, QRectF(0, y - 8, kGutterWidth - 8, 16), Qt::AlignRight | Qt::AlignVCenter, number(tick),
                 t.text3, axis);
    }
    QPen dashed(t.bad, 1);
    dashed.setDashPattern({6, 3});
    const double budgetY = std::floor(yOf(static_cast<double>(facts_.event.budget))) + 0.5;
    painter.setPen(dashed);
    painter.drawLine(QPointF(plot.left(), budgetY), QPointF(plot.right(), budgetY));
    const QPointF lastNow = drawTotals(painter, plot, yOf);
    drawAsked(painter, lastNow, yOf(static_cast<double>(facts_.event.reserved)),
              yOf(static_cast<double>(facts_.event.reserved + facts_.event.requested)));
    drawPhaseNames(painter, plot);
    const double words = std::max(textWidth(stepNow_, strong), textWidth(stepBefore_, strong));
    const double right = width() - 8 - words;
    drawText(painter, QRectF(right - textWidth(stepBefore_, strong) - 16, 0, width(), 16), Qt::AlignVCenter,
             stepBefore_, t.text3, strong);
    drawText(painter, QRectF(right, 0, words + 2, 16), Qt::AlignVCenter, stepNow_, t.accent, strong);
}

} // namespace vitrine::ui
