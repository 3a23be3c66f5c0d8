// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/live_lanes.h"

#include <QGuiApplication>
#include <QPainter>
#include <QPushButton>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"
#include "ui/models/session/run_summary.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/mark_strip.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

namespace {

// Least heights of the plots; what is left goes to them in these shares.
constexpr int kLossHeight = 64, kLossShare = 106;
constexpr int kRateHeight = 32, kNormHeight = 42, kCodesHeight = 38, kSpeedHeight = 38;
constexpr int kMemoryHeight = 96, kMemoryShare = 158;
constexpr int kRoomForAll = 482;       ///< height of the lanes from which on all of them are open, without codes
constexpr int kRoomForCodes = 62;      ///< that their lane takes
constexpr double kScaleOfNone = 1e-4;  ///< up to which the scale goes where no step changed a code
constexpr double kLabelledShare = 0.1; ///< of the memory, from which on a layer has room for its name

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

/// Of what is in sight: without the few steps that lie far from the others, but with the evaluations and the newest.
std::optional<std::pair<double, double>> lossSpan(const TrainingRun& run, TimeRange range, bool smoothed) {
    std::optional<std::pair<double, double>> losses = run.loss().usualSpan(range);
    const auto include = [&losses](const std::optional<std::pair<double, double>>& more) {
        if (more) {
            losses = losses ? std::pair(std::min(losses->first, more->first), std::max(losses->second, more->second))
                            : *more;
        }
    };
    include(run.evaluations().usualSpan(range));
    if (smoothed) {
        include(run.smoothed().usualSpan(range));
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
void paintMinimap(QPainter& painter, const QRectF& plot, const TrainingRun& run, LiveSeries& series,
                  const TimeRange& extent, const QString& rest) {
    const ThemeTokens& t = themeTokens();
    const auto span = run.smoothed().span();
    if (!span) {
        return;
    }
    const AxisMap axis = AxisMap::ofTime(extent, plot.width());
    QPolygonF line;
    for (const PlotSample& sample : series.overview(&TrainingRun::smoothed, axis, static_cast<int>(plot.width()))) {
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

/// The newest one says so, and of the others the first of each kind.
QString savedLabel(const TrainingCheckpoint& checkpoint, std::array<bool, 2>& labelled) {
    if (checkpoint.newest) {
        return QObject::tr("newest");
    }
    return std::exchange(labelled[checkpoint.kept ? 1 : 0], true) ? QString()
           : checkpoint.kept                                      ? QObject::tr("kept")
                                                                  : QObject::tr("dropped");
}

MarkRow savedMarks(const TrainingRun& run) {
    MarkRow saved{QObject::tr("Saved"), {}};
    std::array<bool, 2> labelled{};
    for (const TrainingCheckpoint& checkpoint : run.checkpoints()) {
        StripMark mark;
        mark.place = checkpoint.step * kStepLength;
        mark.look = checkpoint.newest ? StripMark::Look::Accent
                    : checkpoint.kept ? StripMark::Look::Filled
                                      : StripMark::Look::Outline;
        mark.label = savedLabel(checkpoint, labelled);
        mark.tip =
            QObject::tr("Checkpoint of step %1, %2%3")
                .arg(countText(checkpoint.step), checkpoint.kept ? QObject::tr("kept") : QObject::tr("deleted again"),
                     checkpoint.evalLoss ? QObject::tr(", evaluation loss %1").arg(lossText(*checkpoint.evalLoss))
                                         : QString());
        saved.marks.push_back(std::move(mark));
    }
    return saved;
}

MarkRow answerMarks(const TrainingRun& run, std::int64_t left, std::int64_t right) {
    MarkRow row{QObject::tr("Answers"), {}};
    for (const AnswerSet& set : run.answers().sets) {
        StripMark mark;
        mark.place = set.step * kStepLength;
        mark.shape = StripMark::Shape::Diamond;
        const bool newest = &set == &run.answers().sets.back(), shown = set.step == left || set.step == right;
        mark.look = !shown ? StripMark::Look::Outline : newest ? StripMark::Look::Accent : StripMark::Look::Filled;
        mark.label = shown ? QObject::tr("shown below") : QString();
        mark.tip = set.step == 0 ? QObject::tr("Answers before the first step")
                                 : QObject::tr("Answers after step %1").arg(countText(set.step));
        row.marks.push_back(std::move(mark));
    }
    return row;
}

/// "gradients 3.7 MiB": of the categories that have no room for a label.
QString smallCategories(const base::CategoryBytes& bytes, std::uint64_t total) {
    QStringList words;
    for (int i = 0; i < base::kCategoryCount; ++i) {
        const std::uint64_t held = bytes[static_cast<std::size_t>(i)];
        if (held > 0 && static_cast<double>(held) < kLabelledShare * static_cast<double>(total)) {
            words << textOf(base::categoryName(static_cast<base::MemoryCategory>(i))) + QLatin1Char(' ') +
                         bytesText(held);
        }
    }
    return words.join(QStringLiteral(", "));
}

/// "20.01": the unit stands at the scale.
QString withoutUnit(const QString& bytes) {
    qsizetype end = 0;
    while (end < bytes.size() && (bytes[end].isDigit() || bytes[end] == QLatin1Char('.'))) {
        ++end;
    }
    return bytes.left(end);
}

/// "raw 1.336, smoothed 1.312, evaluation 1.365 at 250"
QString lossWords(const TrainingRun& run, std::size_t step, bool smoothed) {
    QStringList losses{QObject::tr("raw %1").arg(lossText(run.loss().value(step)))};
    if (smoothed) {
        losses << QObject::tr("smoothed %1").arg(lossText(run.smoothed().value(step)));
    }
    const PlotSeries& evaluations = run.evaluations();
    const base::TimeNs place = run.steps()[step].step * kStepLength;
    if (auto nearest = evaluations.nearest(place)) {
        const std::size_t index = evaluations.place(*nearest) > place && *nearest > 0 ? *nearest - 1 : *nearest;
        losses << QObject::tr("evaluation %1 at %2")
                      .arg(lossText(evaluations.value(index)), countText(evaluations.place(index) / kStepLength));
    }
    return losses.join(QStringLiteral(", "));
}

} // namespace

LiveLanes::LiveLanes(TimeCursor* time, QWidget* parent) : QObject(parent), time_(time) {
    build(parent);
    connect(stack_, &LaneStack::axisChanged, this, &LiveLanes::updateRoom);
    connect(stack_, &LaneStack::hovered, this, &LiveLanes::factsChanged);
    connect(memory_, &StackLane::modelChanged, this, &LiveLanes::factsChanged);
    connect(time_, &TimeCursor::rangeChanged, this, &LiveLanes::updateScales);
    connect(marks_, &MarkStrip::markClicked, this, [this](int row, int mark) {
        const MarkRow& marks = marks_->rows()[static_cast<std::size_t>(row)];
        const StripMark& clicked = marks.marks[static_cast<std::size_t>(mark)];
        if (clicked.shape == StripMark::Shape::Square) {
            emit checkpointClicked(clicked.place / kStepLength);
        } else {
            emit answersClicked(clicked.place / kStepLength,
                                QGuiApplication::keyboardModifiers().testFlag(Qt::ControlModifier));
        }
    });
}

void LiveLanes::build(QWidget* parent) {
    stack_ = new LaneStack(time_, LaneStack::WithMinimap | LaneStack::WithRuler | LaneStack::WithBands, parent);
    stack_->minimap()->setFixedHeight(30);
    stack_->ruler()->setCounted(kStepLength);
    stack_->ruler()->setLead(tr("Step"));
    stack_->bands()->setTitle(tr("Switches"));
    marks_ = new MarkStrip(tr("Checkpoints and answers"), time_, stack_);
    stack_->addStrip(marks_, false);
    loss_ = new SeriesLane(tr("Loss"), tr("nats per token"), time_, stack_);
    rate_ = new SeriesLane(tr("Learning rate"), {}, time_, stack_);
    norm_ = new SeriesLane(tr("Gradient norm"), tr("before clipping"), time_, stack_);
    codes_ = new SeriesLane(tr("Codes changed"), tr("% of the weight codes, by each step"), time_, stack_);
    codes_->hide();
    speed_ = new SeriesLane(tr("Speed"), {}, time_, stack_);
    memory_ = new StackLane(tr("Memory by category"), time_, stack_);
    memoryFacts_ = new TextLabel(tr("peak of each step"), TypeRole::Table, TextColor::Text3, false, memory_);
    memory_->addHeaderControl(memoryFacts_);
    scale_ = new QPushButton(tr("To the budget"), memory_);
    scale_->setCheckable(true);
    scale_->setFlat(true);
    scale_->setToolTip(tr("The scale goes up to the budget, instead of just above the memory and its plan"));
    setControlHeight(scale_, 20);
    memory_->addHeaderControl(scale_);
    connect(scale_, &QPushButton::toggled, this, [this](bool on) {
        memory_->setBreak(!on);
        updateMemory();
    });
    loss_->setPlotHeight(kLossHeight, kLossShare);
    rate_->setPlotHeight(kRateHeight, 0);
    norm_->setPlotHeight(kNormHeight, 0);
    codes_->setPlotHeight(kCodesHeight, 0);
    speed_->setPlotHeight(kSpeedHeight, 0);
    memory_->setPlotHeight(kMemoryHeight, kMemoryShare);
    memory_->setMarks(false);
    memory_->setBreak(true);
    for (Lane* lane : {static_cast<Lane*>(loss_), static_cast<Lane*>(rate_), static_cast<Lane*>(norm_),
                       static_cast<Lane*>(codes_), static_cast<Lane*>(speed_), static_cast<Lane*>(memory_)}) {
        stack_->addLane(lane);
    }
    stack_->setKeptOpen(6); // which ones are folded depends on the room: see updateRoom()
    for (SeriesLane* lane : {loss_, rate_, norm_, codes_, speed_}) {
        lane->setSpoken([this, lane] {
            const auto step = shownStep();
            return step ? lane->title() + QStringLiteral(". ") + trainingStepText(*run_.training, *step)
                        : lane->facts();
        });
    }
}

/// Loss and memory are what one looks for; where not all have room the lanes between them give way.
void LiveLanes::updateRoom() {
    const bool low = stack_->height() < kRoomForAll + (codes_->isHidden() ? 0 : kRoomForCodes);
    if (low != low_) { // a page that is not shown yet gets its size too
        low_ = low;
        stack_->minimap()->setFixedHeight(low ? 24 : 30);
        for (Lane* lane : {rate_, norm_, codes_, speed_}) {
            lane->setCollapsed(low);
        }
    }
}

void LiveLanes::setRun(LiveRun run) {
    run_ = std::move(run);
    if (!has()) {
        return;
    }
    series_.setRun(run_.info.id, run_.smoothing, run_.training, loss_->frame(), loss_->axis());
    updateSeries();
    updateMemory();
    updateMinimap();
    updateMarks();
}

void LiveLanes::clear() {
    run_ = {};
    planned_ = 0;
    outline_.reset();
}

void LiveLanes::setPlan(std::uint64_t planned, const ErrorBand& band) {
    planned_ = planned;
    band_ = band;
    updateMemory();
}

void LiveLanes::setPlanShown(bool shown) {
    planShown_ = shown;
    updateMemory();
}

void LiveLanes::setOutline(std::optional<std::uint64_t> bytes, const QString& label) {
    outline_ = bytes;
    outlineLabel_ = label;
    updateMemory();
}

void LiveLanes::setShownAnswers(std::int64_t left, std::int64_t right) {
    answersLeft_ = left;
    answersRight_ = right;
    updateMarks();
}

void LiveLanes::updateScales() {
    if (has() && !run_.training->empty()) {
        updateLoss({});
    }
}

void LiveLanes::updateLoss(std::optional<base::TimeNs> same) {
    using Mark = LaneSeries::Mark;
    const TrainingRun& run = *run_.training;
    const bool smoothed = run_.smoothing > 0;
    std::vector<LaneSeries> loss{series_.lane(tr("raw"), &TrainingRun::loss, Mark::Thin, lineColor)};
    if (smoothed) {
        loss.push_back(series_.lane(tr("smoothed"), &TrainingRun::smoothed, Mark::Bold, accentColor));
    }
    loss.push_back(series_.lane(tr("evaluation"), &TrainingRun::evaluations, Mark::Ring, strongColor));
    loss_->setSeries(std::move(loss), scaleOf(lossSpan(run, time_->range(), smoothed), 5, false), same);
}

void LiveLanes::updateSeries() {
    using Mark = LaneSeries::Mark;
    const TrainingRun& run = *run_.training;
    const std::optional<base::TimeNs> same = series_.same();
    updateLoss(same);
    updateRate(same);
    updateCodes(same);
    speed_->setSeries({series_.lane(speed_->title(), &TrainingRun::speed, Mark::Thin, accentColor)},
                      scaleOf(run.speed().usualSpan(time_->extent()), 2, false), same);
    norm_->setSeries({series_.lane(norm_->title(), &TrainingRun::norm, Mark::Thin, accentColor)},
                     scaleOf(normSpan(run), 2, true), same);
    norm_->setLimit(run.clipNorm(), run.clipNorm() ? tr("clip %1").arg(*run.clipNorm()) : QString());
    const QString from = speed_->scale().text(speed_->scale().low);
    speed_->setNote(run.empty() ? tr("tok/s") : tr("tok/s, axis from %1").arg(from));
    std::vector<base::TimeNs> rules;
    if (run.resumedFrom() && *run.resumedFrom() >= run.firstStep()) {
        rules.push_back(*run.resumedFrom() * kStepLength);
    }
    for (SeriesLane* lane : {loss_, rate_, norm_, codes_, speed_}) {
        lane->setRules(rules);
    }
    if (run.empty()) {
        return;
    }
    const std::size_t last = run.steps().size() - 1;
    const base::TimeNs end = run.lastStep() * kStepLength;
    const double shown = run_.smoothing > 0 ? run.smoothed().value(last) : run.loss().value(last);
    loss_->setEnd(end, std::isfinite(shown) ? lossText(shown) : QString(), true);
    rate_->setEnd(end, QString::number(run.rate().value(last) / rate_->scale().unit, 'f', 2));
    norm_->setEnd(end, QString::number(run.norm().value(last), 'g', 3));
    const std::optional<double> codes = run.codesChanged(last);
    codes_->setEnd(end, codes ? QString::number(*codes / codes_->scale().unit, 'g', 2) : QString());
    speed_->setEnd(end, countText(std::llround(run.speed().value(last))));
}

/// Rates are small: the scale counts a power of ten that the title names.
void LiveLanes::updateRate(std::optional<base::TimeNs> same) {
    const auto span = run_.training->rate().span();
    const int power = span && span->second > 0 ? static_cast<int>(std::floor(std::log10(span->second) + 1e-9)) : 0;
    PlotScale scale = scaleOf(span, 2, true);
    scale.unit = power < -1 ? std::pow(10.0, power) : 1;
    rate_->setSeries({series_.lane(rate_->title(), &TrainingRun::rate, LaneSeries::Mark::Thin, accentColor)}, scale,
                     same);
    rate_->setNote(power < -1 ? tr("in units of 1e\u2212%1").arg(-power) : QString());
}

void LiveLanes::updateCodes(std::optional<base::TimeNs> same) {
    const PlotSeries& codes = run_.training->codesChanged();
    codes_->setVisible(!codes.empty());
    updateRoom();
    const double most = codes.span() ? codes.span()->second : 0;
    PlotScale scale = plotScale(0, most > 0 ? most : kScaleOfNone, 2);
    scale.unit = 0.01;
    codes_->setSeries({series_.lane(codes_->title(), &TrainingRun::codesChanged, LaneSeries::Mark::Thin, accentColor)},
                      scale, same);
}

void LiveLanes::updateMemory() {
    if (!has() || run_.timeline == nullptr) {
        return;
    }
    const bool recorded = run_.peak > 0;
    memory_->foldWhileEmpty(!recorded && !run_.training->empty());
    const std::optional<std::uint64_t> budget = recorded || planned_ > 0 ? runSummary(run_.info).budget : std::nullopt;
    const std::uint64_t own = run_.peak + run_.peak / 8; // so that labels have room
    memory_->setTop(scale_->isChecked() ? std::max(own, budget.value_or(0)) : own);
    memory_->setBudget(budget);
    scale_->setVisible(budget && *budget > own);
    StackForecast forecast;
    if (planShown_ && planned_ > 0) {
        forecast.planned = planned_;
        forecast.share = band_.share;
        forecast.label = tr("plan %1 \u00B1%2\u00A0%").arg(bytesText(planned_)).arg(band_.share * 100, 0, 'f', 1);
    }
    forecast.outline = outline_;
    forecast.outlineLabel = outlineLabel_;
    if (recorded && !run_.training->empty()) {
        const base::TrainingStepEvent& last = run_.training->steps().back();
        const profiler::MemoryColumn peak =
            run_.timeline->memory().peak(last.begin, std::max(last.begin + 1, last.end));
        forecast.end = last.step * kStepLength;
        forecast.value = run_.peak;
        forecast.endText = withoutUnit(bytesText(peak.maxTotal));
    }
    memory_->setForecast(std::move(forecast));
    memory_->setModel([this, run = run_.training, timeline = run_.timeline](const AxisMap& axis, int columns) {
        return series_.memory(*run, *timeline, axis, columns);
    });
}

void LiveLanes::updateMinimap() {
    const TimeRange extent = time_->extent();
    const TrainingRun& training = *run_.training;
    const std::int64_t last = training.totalSteps().value_or(training.lastStep());
    const QString steps = tr("%1\u2013%2").arg(extent.begin / kStepLength).arg(countText(last));
    const bool fits = textWidth(steps, Theme::instance().font(TypeRole::Axis)) <= kGutter - 10;
    QString rest;
    if (const auto left = training.rest(); left && run_.live) {
        rest = tr("%1 steps to go, %2").arg(countText(left->steps), longTimeText(left->seconds));
    }
    stack_->minimap()->setPicture(
        [this, run = run_.training, extent, rest](QPainter& painter, const QRectF& plot) {
            paintMinimap(painter, plot, *run, series_, extent, rest);
        },
        fits ? steps : countText(last));
}

void LiveLanes::updateMarks() {
    if (!has()) {
        return;
    }
    const TrainingRun& run = *run_.training;
    const base::TimeNs first = (run.firstStep() - 1) * kStepLength, last = run.lastStep() * kStepLength;
    BandRow switches{tr("Switches"), {}, {}, false};
    if (!run.empty()) {
        const QString set = switchesText(run_.info.specJson);
        const QString words = set.isEmpty() ? tr("no switch") : set;
        switches.bands.push_back(
            {{first, last},
             run.resumedFrom() ? tr("resumed from %1: %2").arg(countText(*run.resumedFrom()), words) : words});
    }
    stack_->bands()->setRows({std::move(switches)});
    std::vector<MarkRow> rows;
    for (MarkRow& row : std::array{savedMarks(run), answerMarks(run, answersLeft_, answersRight_)}) {
        if (!row.marks.empty()) {
            rows.push_back(std::move(row));
        }
    }
    marks_->setVisible(!rows.empty());
    marks_->setRows(std::move(rows));
    std::vector<TimeMark> tags;
    if (const auto step = time_->cursor() ? shownStep() : std::nullopt) {
        const std::int64_t number = run.steps()[*step].step;
        tags.push_back({number * kStepLength, TimeMark::Kind::Cursor, countText(number)});
    }
    if (!run.empty()) {
        tags.push_back({last, TimeMark::Kind::Now, countText(run.lastStep())});
    }
    stack_->ruler()->setMarks(std::move(tags));
}

std::optional<std::size_t> LiveLanes::shownStep() const {
    if (!has() || run_.training->empty()) {
        return std::nullopt;
    }
    for (const Lane* strip : stack_->lanes()) {
        if (strip->hovered()) {
            return run_.training->stepAt(*strip->hovered());
        }
    }
    return time_->cursor() ? run_.training->stepAt(*time_->cursor()) : run_.training->steps().size() - 1;
}

QString LiveLanes::updateFacts() {
    const auto step = shownStep();
    if (!step) {
        return {};
    }
    const TrainingRun& run = *run_.training;
    const QString losses = lossWords(run, *step, run_.smoothing > 0);
    loss_->setFacts(run.notFinite() ? tr("not a number at step %1, %2").arg(countText(run.lastStep()), losses) : losses,
                    run.notFinite() ? TextColor::Bad : TextColor::Text2);
    const QString rate = rateOfLearningText(run.rate().value(*step));
    const QString schedule = scheduleText(run_.info);
    rate_->setFacts(schedule == rate ? rate : tr("%1;  at most %2").arg(rate, schedule));
    norm_->setFacts(run.clipNorm()
                        ? tr("%1 of %2 steps clipped at %3")
                              .arg(countText(run.clippedSteps()), countText(static_cast<qint64>(run.steps().size())))
                              .arg(*run.clipNorm())
                        : QString::number(run.norm().value(*step), 'g', 3));
    const std::optional<double> codes = run.codesChanged(*step);
    codes_->setFacts(codes ? codesText(*codes) : unknownText());
    speed_->setFacts(tr("%1 tok/s").arg(countText(std::llround(run.speed().value(*step)))));
    return memoryFacts(*step);
}

QString LiveLanes::memoryFacts(std::size_t step) {
    const base::TrainingStepEvent& at = run_.training->steps()[step];
    if (run_.timeline == nullptr || run_.peak == 0) {
        memoryFacts_->setText(tr("peak of each step"));
        memory_->setFacts(tr("This run recorded no memory events"));
        return {};
    }
    const profiler::MemoryColumn peak = run_.timeline->memory().peak(at.begin, std::max(at.begin + 1, at.end));
    const QString small = smallCategories(peak.atMax, peak.maxTotal);
    memoryFacts_->setText(small.isEmpty() ? tr("peak of each step")
                                          : tr("peak of each step;  at %1: %2").arg(countText(at.step), small));
    QString measured = tr("measured %1").arg(peakText(run_.peak, peak.incomplete));
    TextColor color = TextColor::Text2;
    if (planned_ > 0) {
        const double error = static_cast<double>(run_.peak) / static_cast<double>(planned_) - 1;
        const bool outside = std::abs(error) > band_.share;
        color = outside ? TextColor::Warn : color;
        measured = tr("%1%2, error %3\u00A0%")
                       .arg(outside ? (error > 0 ? QStringLiteral("\u25B2 ") : QStringLiteral("\u25BC ")) : QString(),
                            measured,
                            (error < 0 ? QStringLiteral("\u2212") : QStringLiteral("+")) +
                                QString::number(std::abs(error) * 100, 'f', 1));
    }
    memory_->setFacts(measured, color);
    return tr(", peak %1").arg(bytesText(peak.maxTotal));
}

bool LiveLanes::stepItem(int direction) {
    const auto step = shownStep();
    if (!step) {
        return false;
    }
    if (marks_->hasFocus() && marks_->isVisible()) {
        const base::TimeNs now = time_->cursor().value_or(run_.training->lastStep() * kStepLength);
        std::optional<base::TimeNs> best;
        for (const MarkRow& row : marks_->rows()) {
            for (const StripMark& mark : row.marks) {
                const base::TimeNs away = (mark.place - now) * direction;
                if (away > 0 && (!best || away < (*best - now) * direction)) {
                    best = mark.place;
                }
            }
        }
        time_->setCursor(best.value_or(now));
        return true;
    }
    const auto next = static_cast<std::int64_t>(*step) + direction;
    if (next >= 0 && next < static_cast<std::int64_t>(run_.training->steps().size())) {
        time_->setCursor(run_.training->steps()[static_cast<std::size_t>(next)].step * kStepLength);
    }
    return true;
}

void LiveLanes::nextPeak() {
    if (!has() || run_.training->empty() || run_.timeline == nullptr || run_.peak == 0) {
        return;
    }
    const auto& steps = run_.training->steps();
    const std::size_t from = time_->cursor() ? run_.training->stepAt(*time_->cursor()).value_or(0) + 1 : 0;
    const auto highestFrom = [&](std::size_t first) -> std::optional<std::int64_t> {
        if (first >= steps.size()) {
            return std::nullopt;
        }
        const profiler::MemoryColumn peak = run_.timeline->memory().peak(steps[first].begin, steps.back().end + 1);
        return run_.training->placeOf(peak.maxTime);
    };
    if (const auto place = highestFrom(from) ? highestFrom(from) : highestFrom(0)) {
        time_->setCursor(place);
    }
}

} // namespace vitrine::ui
