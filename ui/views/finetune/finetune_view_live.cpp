// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The page Live: from the run's events to lanes, marks and words.
#include <QCheckBox>
#include <QComboBox>
#include <QPainter>
#include <QStackedWidget>
#include <QTableView>
#include <algorithm>
#include <cmath>
#include <utility>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/finetune/finetune_form.h"
#include "ui/views/finetune/finetune_panel.h"
#include "ui/views/finetune/finetune_view.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/fact_strip.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/mark_strip.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

namespace {

constexpr double kFreeShare = 0.04; ///< of the axis, right of the newest value
constexpr std::int64_t kShownSteps = 100;
constexpr int kNamedCategories = 5;

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

base::TimeNs withAir(std::int64_t steps) {
    return static_cast<base::TimeNs>(
        std::ceil(static_cast<double>(std::max<std::int64_t>(steps, 1) * kStepLength) * (1 + kFreeShare)));
}

} // namespace

double FinetuneView::smoothing() const {
    return smoothing_->currentData().toDouble();
}

void FinetuneView::onRuns() {
    if (startedRun_ != 0 && runInfo(startedRun_) != nullptr) {
        document()->setRunA(std::exchange(startedRun_, 0));
    }
    reload();
}

void FinetuneView::refresh() {
    const sessions::RunInfo* run = runInfo(runA());
    const bool trains = run != nullptr && isTrainingRun(*run);
    const sessions::RunId shown = trains ? run->id : 0;
    if (shown != shownRun_) {
        shownRun_ = shown;
        clear();
        if (shown != 0 && !form_->touched()) {
            form_->take(textOf(run->specJson), false);
        }
        if (shown != 0 && page() == Form && !form_->touched()) {
            showPage(Live); // somebody chose the run to look at it
        }
    }
    const TimelineState state = timelineOf(shownRun_);
    if (page() == Live) {
        showRunError();
    }
    if (!state.timeline) {
        job_.cancel();
        updateLive();
        return;
    }
    job_.start(
        [info = *run, timeline = state.timeline, share = smoothing()] {
            Built built{TrainingRun::make(info, *timeline, share), timeline, 0};
            if (const auto all = built.training->timesOf(0, (built.training->lastStep() + 1) * kStepLength)) {
                built.peak = timeline->memory().peak(all->begin, all->end).maxTotal;
            }
            return built;
        },
        ifStill(shownRun_, [this](Built built) { take(std::move(built)); }));
    updateLive();
}

/// Over the lanes; the form has errors of its own.
void FinetuneView::showRunError() {
    const sessions::RunInfo* run = page() == Live ? runInfo(shownRun_) : nullptr;
    const bool failed = run != nullptr &&
                        (run->status == sessions::RunStatus::Failed || run->status == sessions::RunStatus::OutOfMemory);
    const QString unread = run != nullptr ? timelineOf(shownRun_).error : QString();
    showError(!unread.isEmpty() ? unread : failed ? textOf(run->error) : QString());
}

void FinetuneView::clear() {
    training_.reset();
    timeline_.reset();
    peak_ = 0;
    time_->reset({0, withAir(1)});
}

void FinetuneView::take(Built built) {
    const bool first = training_ == nullptr;
    training_ = std::move(built.training);
    timeline_ = std::move(built.timeline);
    peak_ = built.peak;
    updateExtent();
    if (first) {
        applyRange();
    }
    updateLive();
}

QString FinetuneView::whyNothing() const {
    const sessions::RunInfo* run = runInfo(shownRun_);
    if (run == nullptr) {
        const bool any = document() != nullptr && std::ranges::any_of(document()->runs(), isTrainingRun);
        return any ? tr("The chosen run is no fine-tuning run.") : tr("No fine-tuning run in this session.");
    }
    if (training_ != nullptr && !training_->empty()) {
        return {};
    }
    if (run->status == sessions::RunStatus::Running) {
        return timeline_ ? QString() : tr("The run begins."); // axes wait for their values
    }
    if (!timelineOf(shownRun_).complete || job_.busy()) {
        return tr("Reading the events of this run.");
    }
    return run->error.empty()
               ? tr("This run recorded no steps: it was recorded by an earlier version, on Meta, or with "
                    "the profile off.")
               : tr("The run ended before its first step: %1").arg(textOf(run->error));
}

QString FinetuneView::liveText() const {
    return live_->currentWidget() == nothing_ ? nothing_->text() : QString();
}

void FinetuneView::updateLive() {
    const sessions::RunInfo* run = runInfo(shownRun_);
    const QString nothing = whyNothing();
    live_->setCurrentIndex(nothing.isEmpty() ? 0 : 1);
    sessions::RunId other = 0;
    for (const sessions::RunInfo& each :
         document() != nullptr ? document()->runs() : std::vector<sessions::RunInfo>()) {
        other = isTrainingRun(each) && each.id != shownRun_ ? each.id : other;
    }
    if (run == nullptr && other != 0) {
        nothing_->set(nothing, tr("Open a fine-tuning run"), [this, other] { document()->setRunA(other); });
    } else {
        nothing_->set(nothing, tr("Open the form"), [this] { showPage(Form); });
    }
    facts_->setVisible(run != nullptr);
    if (run != nullptr) {
        facts_->setFacts(trainingFacts(*run));
    }
    panel_->setRun(run, training_);
    if (nothing.isEmpty()) {
        updateLanes();
        updateMemory();
        updateMinimap();
        updateMarks();
    }
    updateHeader();
    updateFacts();
    updateTwin();
    updateButtons();
    emit availabilityChanged();
}

void FinetuneView::updateHeader() {
    const std::optional<std::int64_t> total = training_ ? training_->totalSteps() : std::nullopt;
    ranges_->button(All)->setText(total ? tr("All %1").arg(countText(*total)) : tr("All"));
    ranges_->updateGeometry();
}

/// From the step before the first one to the last one of the run, if that is known, with room for the newest values.
void FinetuneView::updateExtent() {
    if (training_->empty()) {
        time_->setExtent({0, withAir(training_->totalSteps().value_or(1))});
        return;
    }
    const base::TimeNs begin = (training_->firstStep() - 1) * kStepLength;
    const std::int64_t last = std::max(training_->lastStep(), training_->totalSteps().value_or(0));
    placing_ = true;
    time_->setExtent({begin, begin + withAir(last - training_->firstStep() + 1)});
    placing_ = false;
    if (follow_->isChecked() && live(shownRun_)) {
        applyRange();
    }
}

void FinetuneView::applyRange() {
    if (training_ == nullptr || training_->empty()) {
        return;
    }
    placing_ = true;
    const std::int64_t first = ranges_->current() == Last100
                                   ? std::max(training_->firstStep() - 1, training_->lastStep() - kShownSteps)
                                   : training_->firstStep() - 1;
    if (ranges_->current() == All) {
        time_->setRange(time_->extent(), false);
    } else {
        time_->setRange({first * kStepLength, first * kStepLength + withAir(training_->lastStep() - first)}, false);
    }
    placing_ = false;
}

void FinetuneView::updateLanes() {
    if (training_ == nullptr) {
        return;
    }
    using Mark = LaneSeries::Mark;
    const TrainingRun& run = *training_;
    std::optional<std::pair<double, double>> losses = run.loss().span();
    if (const auto more = run.evaluations().span(); more && losses) {
        losses = std::pair(std::min(losses->first, more->first), std::max(losses->second, more->second));
    }
    std::vector<LaneSeries> loss{laneSeries(tr("raw"), training_, &TrainingRun::loss, Mark::Thin, lineColor)};
    if (smoothing() > 0) {
        loss.push_back(laneSeries(tr("smoothed"), training_, &TrainingRun::smoothed, Mark::Bold, accentColor));
    }
    loss.push_back(laneSeries(tr("evaluation"), training_, &TrainingRun::evaluations, Mark::Ring, strongColor));
    loss_->setSeries(std::move(loss), scaleOf(losses, 5, false));
    const auto thin = [&](SeriesLane* lane, const PlotSeries& (TrainingRun::*series)() const, bool fromZero) {
        lane->setSeries({laneSeries(lane->title(), training_, series, Mark::Thin, accentColor)},
                        scaleOf((run.*series)().span(), 2, fromZero));
    };
    thin(rate_, &TrainingRun::rate, true);
    thin(speed_, &TrainingRun::speed, false);
    auto norms = run.norm().span();
    if (norms && run.clipNorm() && *run.clipNorm() < norms->second * 4) {
        norms->second = std::max(norms->second, *run.clipNorm());
    }
    norm_->setSeries({laneSeries(norm_->title(), training_, &TrainingRun::norm, Mark::Thin, accentColor)},
                     scaleOf(norms, 2, true));
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
    rate_->setEnd(end, rateOfLearningText(run.rate().value(last)));
    norm_->setEnd(end, QString::number(run.norm().value(last), 'g', 3));
    speed_->setEnd(end, countText(std::llround(run.speed().value(last))));
}

void FinetuneView::updateMemory() {
    if (training_ == nullptr || timeline_ == nullptr) {
        return;
    }
    const sessions::RunInfo* info = runInfo(shownRun_);
    const bool recorded = peak_ > 0;
    memory_->foldWhileEmpty(!recorded && !training_->empty());
    memory_->setTop(peak_);
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
            const ThemeTokens& t = themeTokens();
            const auto span = run->smoothed().span();
            if (!span) {
                return;
            }
            const AxisMap axis = AxisMap::ofTime(extent, plot.width());
            QPolygonF line;
            for (const PlotSample& sample : run->smoothed().samples(axis, static_cast<int>(plot.width()))) {
                if (std::isfinite(sample.value)) {
                    const double part = (sample.value - span->first) / std::max(span->second - span->first, 1e-12);
                    line << QPointF(plot.left() + sample.x, plot.bottom() - 5 - part * (plot.height() - 10));
                }
            }
            painter.setPen(QPen(t.accent, 1));
            painter.drawPolyline(line);
            const double from = plot.left() + axis.x(run->lastStep() * kStepLength);
            const QFont font = Theme::instance().font(TypeRole::Axis);
            if (textWidth(rest, font) + 16 < plot.right() - from) {
                drawText(painter, QRectF(from, plot.top(), plot.right() - from, plot.height()), Qt::AlignCenter, rest,
                         t.text2, font);
            }
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
    MarkRow saved{tr("Saved"), {}};
    for (const TrainingCheckpoint& checkpoint : run.checkpoints()) {
        StripMark mark;
        mark.place = checkpoint.step * kStepLength;
        mark.look = checkpoint.newest ? StripMark::Look::Accent
                    : checkpoint.kept ? StripMark::Look::Filled
                                      : StripMark::Look::Outline;
        mark.label = checkpoint.newest ? tr("newest") : QString();
        mark.tip =
            tr("Checkpoint of step %1, %2%3")
                .arg(countText(checkpoint.step), checkpoint.kept ? tr("kept") : tr("deleted again"),
                     checkpoint.evalLoss ? tr(", evaluation loss %1").arg(lossText(*checkpoint.evalLoss)) : QString());
        saved.marks.push_back(std::move(mark));
    }
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

std::optional<std::size_t> FinetuneView::shownStep() const {
    if (training_ == nullptr || training_->empty()) {
        return std::nullopt;
    }
    for (const TimeStrip* strip : {static_cast<const TimeStrip*>(loss_), static_cast<const TimeStrip*>(rate_),
                                   static_cast<const TimeStrip*>(norm_), static_cast<const TimeStrip*>(speed_),
                                   static_cast<const TimeStrip*>(memory_)}) {
        if (strip->hovered()) {
            return training_->stepAt(*strip->hovered());
        }
    }
    return time_->cursor() ? training_->stepAt(*time_->cursor()) : training_->steps().size() - 1;
}

void FinetuneView::updateFacts() {
    const auto step = shownStep();
    if (!step || page() != Live) {
        if (page() == Live) {
            setReadout({});
        }
        return;
    }
    const TrainingRun& run = *training_;
    QStringList losses{tr("raw %1").arg(lossText(run.loss().value(*step)))};
    if (smoothing() > 0) {
        losses << tr("smoothed %1").arg(lossText(run.smoothed().value(*step)));
    }
    const PlotSeries& evaluations = run.evaluations();
    const base::TimeNs place = run.steps()[*step].step * kStepLength;
    if (auto nearest = evaluations.nearest(place)) {
        const std::size_t index = evaluations.place(*nearest) > place && *nearest > 0 ? *nearest - 1 : *nearest;
        losses << tr("evaluation %1 at %2")
                      .arg(lossText(evaluations.value(index)), countText(evaluations.place(index) / kStepLength));
    }
    loss_->setFacts(
        run.notFinite()
            ? tr("not a number at step %1, %2").arg(countText(run.lastStep()), losses.join(QStringLiteral(", ")))
            : losses.join(QStringLiteral(", ")),
        run.notFinite() ? TextColor::Bad : TextColor::Text2);
    rate_->setFacts(rateOfLearningText(run.rate().value(*step)));
    norm_->setFacts(run.clipNorm()
                        ? tr("%1 of %2 steps clipped at %3")
                              .arg(countText(run.clippedSteps()), countText(static_cast<qint64>(run.steps().size())))
                              .arg(*run.clipNorm())
                        : QString::number(run.norm().value(*step), 'g', 3));
    speed_->setFacts(tr("%1 tok/s").arg(countText(std::llround(run.speed().value(*step)))));
    const auto times = run.timesOf(place, place + 1);
    QString memory;
    if (times && timeline_ && peak_ > 0) {
        const profiler::MemoryColumn peak = timeline_->memory().peak(times->begin, times->end);
        std::vector<std::pair<std::uint64_t, int>> order;
        for (int i = 0; i < base::kCategoryCount; ++i) {
            order.emplace_back(peak.atMax[static_cast<std::size_t>(i)], i);
        }
        std::ranges::stable_sort(order, std::greater(), &std::pair<std::uint64_t, int>::first);
        QStringList words;
        for (int i = 0; i < kNamedCategories && order[static_cast<std::size_t>(i)].first > 0; ++i) {
            const auto& [bytes, category] = order[static_cast<std::size_t>(i)];
            words << textOf(base::categoryName(static_cast<base::MemoryCategory>(category))) + QLatin1Char(' ') +
                         bytesText(bytes);
        }
        memory_->setFacts(tr("peak of step %1: %2;  %3")
                              .arg(countText(run.steps()[*step].step), peakText(peak.maxTotal, peak.incomplete),
                                   words.join(QStringLiteral(", "))));
        memory = tr(", peak %1").arg(bytesText(peak.maxTotal));
    } else {
        memory_->setFacts(tr("This run recorded no memory events"));
    }
    setReadout(trainingStepText(run, *step) + memory);
}

void FinetuneView::updateTwin() {
    if (header()->tableShown() && training_ != nullptr) {
        twinModel()->setTree(trainingStepTable(*training_));
        twin()->resizeColumnsToContents();
    }
}

/// The other views go to the peak of the step, which is what one wants to see of it there.
void FinetuneView::shareCursor() {
    const auto step = time_->cursor() && isVisible() ? shownStep() : std::nullopt;
    if (step && context().time != nullptr && timeline_) {
        const base::TrainingStepEvent& at = training_->steps()[*step];
        const profiler::MemoryColumn peak = timeline_->memory().peak(at.begin, std::max(at.begin + 1, at.end));
        context().time->setCursor(peak.maxTotal > 0 ? peak.maxTime : at.begin);
    }
}

} // namespace vitrine::ui
