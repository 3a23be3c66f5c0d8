// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The lanes of the page Live, and the strips above them.
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/finetune/finetune_view.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/mark_strip.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

namespace {

/// A series of the run that is shown, drawn as long as the lane keeps it.
LaneSeries laneSeries(const QString& name, const TrainingRunPtr& run, const PlotSeries& (TrainingRun::*series)() const,
                      LaneSeries::Mark mark, std::function<QColor(const ThemeTokens&)> color) {
    return {name, [run, series](const AxisMap& axis, int columns) { return ((*run).*series)().samples(axis, columns); },
            std::move(color), mark};
}

QColor lineColor(const ThemeTokens& t) {
    return t.line2;
}

QColor accentColor(const ThemeTokens& t) {
    return t.accent;
}

QColor strongColor(const ThemeTokens& t) {
    return t.text1;
}

PlotScale scaleOf(std::optional<std::pair<double, double>> span, int lines, bool fromZero) {
    if (!span) {
        return {};
    }
    return plotScale(fromZero ? std::min(0.0, span->first) : span->first, span->second, lines);
}

std::optional<std::pair<double, double>> lossSpan(const TrainingRun& run) {
    std::optional<std::pair<double, double>> losses = run.loss().span();
    if (const auto more = run.evaluations().span(); more && losses) {
        losses = std::pair(std::min(losses->first, more->first), std::max(losses->second, more->second));
    }
    return losses;
}

/// With the norm that is clipped at, where it is not far above.
std::optional<std::pair<double, double>> normSpan(const TrainingRun& run) {
    auto norms = run.norm().span();
    if (norms && run.clipNorm() && *run.clipNorm() < norms->second * 4) {
        norms->second = std::max(norms->second, *run.clipNorm());
    }
    return norms;
}

/// The smoothed loss over all steps; `rest` stands in the part that is still to come.
void paintMinimap(QPainter& painter, const QRectF& plot, const TrainingRun& run, const TimeRange& extent,
                  const QString& rest) {
    const ThemeTokens& t = themeTokens();
    const auto span = run.smoothed().span();
    if (!span) {
        return;
    }
    const AxisMap axis = AxisMap::ofTime(extent, plot.width());
    QPolygonF line;
    for (const PlotSample& sample : run.smoothed().samples(axis, static_cast<int>(plot.width()))) {
        if (std::isfinite(sample.value)) {
            const double part = (sample.value - span->first) / std::max(span->second - span->first, 1e-12);
            line << QPointF(plot.left() + sample.x, plot.bottom() - 5 - part * (plot.height() - 10));
        }
    }
    painter.setPen(QPen(t.accent, 1));
    painter.drawPolyline(line);
    const double from = plot.left() + axis.x(run.lastStep() * kStepLength);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    if (textWidth(rest, font) + 16 < plot.right() - from) {
        drawText(painter, QRectF(from, plot.top(), plot.right() - from, plot.height()), Qt::AlignCenter, rest, t.text2,
                 font);
    }
}

MarkRow savedMarks(const TrainingRun& run) {
    MarkRow saved{QObject::tr("Saved"), {}};
    for (const TrainingCheckpoint& checkpoint : run.checkpoints()) {
        StripMark mark;
        mark.place = checkpoint.step * kStepLength;
        mark.look = checkpoint.newest ? StripMark::Look::Accent
                    : checkpoint.kept ? StripMark::Look::Filled
                                      : StripMark::Look::Outline;
        mark.label = checkpoint.newest ? QObject::tr("newest") : QString();
        mark.tip =
            QObject::tr("Checkpoint of step %1, %2%3")
                .arg(countText(checkpoint.step), checkpoint.kept ? QObject::tr("kept") : QObject::tr("deleted again"),
                     checkpoint.evalLoss ? QObject::tr(", evaluation loss %1").arg(lossText(*checkpoint.evalLoss))
                                         : QString());
        saved.marks.push_back(std::move(mark));
    }
    return saved;
}

} // namespace

void FinetuneView::updateLanes() {
    if (training_ == nullptr) {
        return;
    }
    using Mark = LaneSeries::Mark;
    const TrainingRun& run = *training_;
    std::vector<LaneSeries> loss{laneSeries(tr("raw"), training_, &TrainingRun::loss, Mark::Thin, lineColor)};
    if (smoothing() > 0) {
        loss.push_back(laneSeries(tr("smoothed"), training_, &TrainingRun::smoothed, Mark::Bold, accentColor));
    }
    loss.push_back(laneSeries(tr("evaluation"), training_, &TrainingRun::evaluations, Mark::Ring, strongColor));
    loss_->setSeries(std::move(loss), scaleOf(lossSpan(run), 5, false));
    const auto thin = [&](SeriesLane* lane, const PlotSeries& (TrainingRun::*series)() const, bool fromZero) {
        lane->setSeries({laneSeries(lane->title(), training_, series, Mark::Thin, accentColor)},
                        scaleOf((run.*series)().span(), 2, fromZero));
    };
    showRateUnit();
    thin(speed_, &TrainingRun::speed, false);
    norm_->setSeries({laneSeries(norm_->title(), training_, &TrainingRun::norm, Mark::Thin, accentColor)},
                     scaleOf(normSpan(run), 2, true));
    norm_->setLimit(run.clipNorm(), run.clipNorm() ? tr("clip %1").arg(*run.clipNorm()) : QString());
    const QString from = speed_->scale().text(speed_->scale().low);
    speed_->setNote(run.empty() ? tr("tok/s") : tr("tok/s, axis from %1").arg(from));
    if (run.empty()) {
        return;
    }
    const std::size_t last = run.steps().size() - 1;
    const base::TimeNs end = run.lastStep() * kStepLength;
    const double shown = smoothing() > 0 ? run.smoothed().value(last) : run.loss().value(last);
    loss_->setEnd(end, std::isfinite(shown) ? lossText(shown) : QString(), true);
    rate_->setEnd(end, QString::number(run.rate().value(last) / rate_->scale().unit, 'f', 2));
    norm_->setEnd(end, QString::number(run.norm().value(last), 'g', 3));
    speed_->setEnd(end, countText(std::llround(run.speed().value(last))));
}

/// Rates are small: the scale counts a power of ten that the title names.
void FinetuneView::showRateUnit() {
    const auto span = training_->rate().span();
    const int power = span && span->second > 0 ? static_cast<int>(std::floor(std::log10(span->second) + 1e-9)) : 0;
    PlotScale scale = scaleOf(span, 2, true);
    scale.unit = power < -1 ? std::pow(10.0, power) : 1;
    rate_->setSeries({laneSeries(rate_->title(), training_, &TrainingRun::rate, LaneSeries::Mark::Thin, accentColor)},
                     scale);
    rate_->setNote(power < -1 ? tr("in units of 1e\u2212%1").arg(-power) : QString());
}

void FinetuneView::updateMemory() {
    if (training_ == nullptr || timeline_ == nullptr) {
        return;
    }
    const sessions::RunInfo* info = runInfo(shownRun_);
    const bool recorded = peak_ > 0;
    memory_->foldWhileEmpty(!recorded && !training_->empty());
    memory_->setTop(peak_ + peak_ / 8); // so that the budget's words have room
    memory_->setBudget(info != nullptr && recorded ? runSummary(*info).budget : std::nullopt);
    memory_->setModel([run = training_, timeline = timeline_](const AxisMap& axis, int columns) {
        return trainingStack(*run, *timeline, axis, columns);
    });
}

void FinetuneView::updateMinimap() {
    if (training_ == nullptr) {
        return;
    }
    const TimeRange extent = time_->extent();
    const std::int64_t last = training_->totalSteps().value_or(training_->lastStep());
    QString rest;
    if (const auto left = training_->rest(); left && live(shownRun_)) {
        rest = tr("%1 steps to go, %2").arg(countText(left->steps), longTimeText(left->seconds));
    }
    lanes_->minimap()->setPicture(
        [run = training_, extent, rest](QPainter& painter, const QRectF& plot) {
            paintMinimap(painter, plot, *run, extent, rest);
        },
        tr("%1–%2").arg(extent.begin / kStepLength).arg(countText(last)));
}

void FinetuneView::updateMarks() {
    if (training_ == nullptr) {
        return;
    }
    const TrainingRun& run = *training_;
    const base::TimeNs first = (run.firstStep() - 1) * kStepLength, last = run.lastStep() * kStepLength;
    BandRow parts{tr("Run"), {}, {}, false};
    if (!run.empty()) {
        parts.bands.push_back(
            {{first, last},
             run.resumedFrom() ? tr("resumed from %1").arg(countText(*run.resumedFrom())) : tr("from the start")});
    }
    lanes_->bands()->setRows({std::move(parts)});
    MarkRow saved = savedMarks(run);
    marks_->setVisible(!saved.marks.empty());
    marks_->setRows({std::move(saved)});
    std::vector<TimeMark> tags;
    if (const auto step = time_->cursor() ? shownStep() : std::nullopt) {
        tags.push_back(
            {run.steps()[*step].step * kStepLength, TimeMark::Kind::Cursor, countText(run.steps()[*step].step)});
    }
    if (!run.empty()) {
        tags.push_back({last, TimeMark::Kind::Now, countText(run.lastStep())});
    }
    lanes_->ruler()->setMarks(std::move(tags));
}

} // namespace vitrine::ui
