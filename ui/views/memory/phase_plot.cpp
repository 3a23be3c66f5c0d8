// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/phase_plot.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "profiler/analysis/scope_places.h"
#include "ui/models/format.h"
#include "ui/models/memory_facts.h"
#include "ui/widgets/paint.h"
#include "ui/widgets/timeline/plot.h"

namespace vitrine::ui {

using profiler::MemoryTimeline;
using profiler::ScopeRow;

namespace {

constexpr int kPoints = 160; // over the whole plot
constexpr double kGutterWidth = 52, kTitleHeight = 22, kFootHeight = 18;

base::TimeNs endOf(const MemoryTimeline& timeline, const ScopeRow& scope) {
    return scope.end < 0 ? timeline.end() : scope.end;
}

std::vector<ScopeRow> phasesOf(const MemoryTimeline& timeline, const ScopeRow& step) {
    auto phases = profiler::childScopes(timeline, step.id, base::ScopeKind::Phase, step.begin, endOf(timeline, step));
    return phases.empty() ? std::vector<ScopeRow>{step} : phases;
}

std::vector<double> totals(const MemoryTimeline& timeline, TimeRange range, int points) {
    std::vector<double> values;
    for (const profiler::MemoryColumn& column :
         timeline.query(range.begin, std::max(range.end, range.begin + 1), std::max(1, points))) {
        values.push_back(static_cast<double>(column.maxTotal));
    }
    return values;
}

} // namespace

PhasePlot::PhasePlot(QWidget* parent) : QWidget(parent) {
    setAccessibleName(tr("Total by phase"));
    connect(&Theme::instance(), &Theme::changed, this, QOverload<>::of(&QWidget::update));
}

void PhasePlot::setFailure(TimelinePtr timeline, const OomFacts& facts) {
    facts_ = facts;
    phases_.clear();
    if (timeline && facts.step != nullptr && facts.before != nullptr) {
        const auto now = phasesOf(*timeline, *facts.step), before = phasesOf(*timeline, *facts.before);
        stepNow_ = scopeTitle(*timeline, *facts.step, false);
        stepBefore_ = scopeTitle(*timeline, *facts.before, false);
        const auto length = [&](const ScopeRow& scope) {
            return static_cast<double>(std::max<base::TimeNs>(1, endOf(*timeline, scope) - scope.begin));
        };
        // Up to the phase that failed: what the step before did after it compares with nothing.
        const std::size_t count = std::min(now.size(), before.size());
        double whole = 0;
        for (std::size_t i = 0; i < count; ++i) {
            whole += std::max(length(now[i]), length(before[i]));
        }
        double done = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const double longest = std::max(length(now[i]), length(before[i]));
            Phase phase;
            phase.name = scopeTitle(*timeline, now[i], false);
            phase.from = done / whole;
            phase.to = (done + longest) / whole;
            const int points = std::max(2, static_cast<int>(std::lround(kPoints * longest / whole)));
            // A phase stands over the same phase whatever its speed; the one that failed ends where it was cut short.
            const bool failed = i + 1 == count;
            const auto part = [&](const ScopeRow& scope) {
                const double share = failed ? length(scope) / longest : 1;
                const int own = std::max(1, static_cast<int>(std::lround(points * share)));
                return totals(*timeline, {scope.begin, endOf(*timeline, scope)}, own);
            };
            phase.now = part(now[i]);
            phase.before = part(before[i]);
            // The state that failed is the last one, before what it held was freed.
            if (failed && !phase.now.empty()) {
                phase.now.back() = static_cast<double>(totalBytes(facts.held));
            }
            done += longest;
            phases_.push_back(std::move(phase));
        }
    }
    setVisible(!phases_.empty());
    update();
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
    const std::uint64_t needed = std::max(facts_.event.budget, totalBytes(facts_.held));
    const ByteScale scale = byteScale(needed, plot.height(), 5);
    drawText(painter, QRectF(0, 0, width(), 16), Qt::AlignVCenter,
             tr("Total by phase, %1").arg(QString::fromLatin1(scale.grid.unitName)), t.text2, table);
    const auto yOf = [&](double bytes) { return plot.top() + std::clamp(scale.y(bytes), 0.0, plot.height()); };
    for (std::uint64_t tick = 0; tick <= scale.top; tick += std::max<std::uint64_t>(1, scale.grid.step)) {
        const double y = yOf(static_cast<double>(tick));
        hairline(painter, plot.left(), plot.right(), std::min(y, plot.bottom() - 1), t.line0);
        drawText(painter, QRectF(0, y - 8, kGutterWidth - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                 QString::number(static_cast<double>(tick) / static_cast<double>(scale.grid.unit)), t.text3, axis);
    }
    QPen dashed(t.bad, 1);
    dashed.setDashPattern({6, 3});
    const double budgetY = std::floor(yOf(static_cast<double>(facts_.event.budget))) + 0.5;
    painter.setPen(dashed);
    painter.drawLine(QPointF(plot.left(), budgetY), QPointF(plot.right(), budgetY));
    QPointF lastNow;
    for (const bool now : {false, true}) {
        QPolygonF line;
        for (const Phase& phase : phases_) {
            const std::vector<double>& values = now ? phase.now : phase.before;
            const std::size_t longest = std::max(phase.now.size(), phase.before.size());
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double place =
                    phase.from + (phase.to - phase.from) * static_cast<double>(i) / static_cast<double>(longest);
                line << QPointF(plot.left() + place * plot.width(), yOf(values[i]));
            }
        }
        painter.setPen(QPen(now ? t.accent : t.text3, now ? 1.5 : 1));
        painter.drawPolyline(line);
        lastNow = line.isEmpty() ? QPointF() : line.back();
    }
    // What was asked for on top of what was held.
    const double asked = yOf(static_cast<double>(totalBytes(facts_.held) + facts_.event.requested));
    QPen up(t.bad, 1.5);
    up.setDashPattern({2, 2});
    painter.setPen(up);
    painter.drawLine(lastNow, QPointF(lastNow.x(), asked - 2));
    painter.setPen(QPen(t.bad, 1.5));
    painter.drawPolyline(
        QPolygonF({{lastNow.x() - 3, asked + 2}, {lastNow.x(), asked - 2}, {lastNow.x() + 3, asked + 2}}));
    LabelPlaces places;
    for (const Phase& phase : phases_) {
        const double x = plot.left() + phase.from * plot.width();
        if (phase.from > 0) {
            plumbline(painter, x, plot.top(), plot.bottom(), t.line1);
        }
        const double w = textWidth(phase.name, axis);
        const QRectF box(std::min(x + 3, plot.right() - w), plot.bottom() + 2, w + 1, 14);
        if (places.take(box)) {
            drawText(painter, box, Qt::AlignVCenter, phase.name, t.text3, axis);
        }
    }
    const double words = std::max(textWidth(stepNow_, strong), textWidth(stepBefore_, strong));
    const double right = width() - 8 - words;
    drawText(painter, QRectF(right - textWidth(stepBefore_, strong) - 16, 0, width(), 16), Qt::AlignVCenter,
             stepBefore_, t.text3, strong);
    drawText(painter, QRectF(right, 0, words + 2, 16), Qt::AlignVCenter, stepNow_, t.accent, strong);
}

} // namespace vitrine::ui
