// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/compare/training_compare.h"

#include <QComboBox>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/step_text.h"
#include "ui/models/finetune/training_text.h"
#include "ui/views/finetune/step_rows.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/part_strip.h"
#include "ui/widgets/timeline/series_lane.h"
#include "ui/widgets/timeline/step_lane.h"

namespace vitrine::ui {

namespace {

constexpr int kLeastMemoryPlot = 48, kMemoryPlot = 120, kLeastLossPlot = 48, kLossPlot = 96;
constexpr int kMemoryShare = 5, kLossShare = 2;
constexpr double kCompareSmoothing = 0.9; ///< as the Fine-tune view begins
constexpr double kRawStrength = 0.4;

QColor colorA(const ThemeTokens& t) {
    return t.compareA;
}

QColor colorB(const ThemeTokens& t) {
    return t.compareB;
}

LaneSeries compareSeries(const QString& name, const std::shared_ptr<const LossCurve>& curve,
                         PlotSeries LossCurve::* series, LaneSeries::Mark mark, QColor (*color)(const ThemeTokens&)) {
    const bool raw = mark == LaneSeries::Mark::Thin;
    return {name,
            [curve, series](const AxisMap& axis, int columns) { return ((*curve).*series).samples(axis, columns); },
            [color, raw](const ThemeTokens& t) { return raw ? withAlpha(color(t), kRawStrength) : color(t); }, mark};
}

std::optional<std::pair<double, double>> joined(std::optional<std::pair<double, double>> one,
                                                std::optional<std::pair<double, double>> other) {
    if (!one || !other) {
        return one ? one : other;
    }
    return std::pair(std::min(one->first, other->first), std::max(one->second, other->second));
}

std::shared_ptr<const LossCurve> curveOf(const TrainingSide& side, LossAxis axis) {
    if (side.timeline == nullptr) {
        return nullptr;
    }
    return std::make_shared<LossCurve>(
        lossCurve(*TrainingRun::make(side.run, *side.timeline, kCompareSmoothing), axis));
}

} // namespace

TrainingCompare::TrainingCompare(QWidget* parent)
    : QWidget(parent), stepTime_(new TimeCursor(this)), lossTime_(new TimeCursor(this)), job_(this) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    buildMemory();
    buildLosses();
    connect(stepTime_, &TimeCursor::cursorChanged, this, &TrainingCompare::sayStep);
    connect(lossTime_, &TimeCursor::cursorChanged, this, &TrainingCompare::sayLoss);
}

void TrainingCompare::buildMemory() {
    auto* head = new Surface(Surface::Fill::Panel, Surface::Top, this);
    head->setFixedHeight(28);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(12, 1, 12, 0);
    row->setSpacing(8);
    row->addWidget(new TextLabel(tr("Memory over one step"), TypeRole::Table, TextColor::Text1, true, head));
    steps_ = new QComboBox(head);
    steps_->setAccessibleName(tr("Step of A; of B the nearest one"));
    steps_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    setControlHeight(steps_, 22);
    row->addWidget(steps_);
    align_ = new SegmentedControl({tr("Phase"), tr("Time")}, head);
    align_->setAccessibleName(tr("How B is laid over A"));
    align_->setFixedHeight(22);
    row->addWidget(align_);
    note_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, head);
    note_->setElide(true);
    note_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row->addWidget(note_, 1);
    layout()->addWidget(head);
    memory_ = new LaneStack(stepTime_, LaneStack::WithRuler, this);
    memory_->setKeptOpen(2);
    parts_ = new PartStrip(tr("Phases and layers of A"), stepTime_, memory_);
    memory_->addStrip(parts_, false);
    laneA_ = new StepLane(tr("A"), stepTime_, memory_);
    laneB_ = new StepLane(tr("B"), stepTime_, memory_);
    for (const auto& [lane, letter] : {std::pair(laneA_, QLatin1Char('A')), std::pair(laneB_, QLatin1Char('B'))}) {
        lane->setBadge(letter);
        lane->setPlotHeight(kLeastMemoryPlot, kMemoryPlot);
        memory_->addLane(lane);
    }
    static_cast<QVBoxLayout*>(layout())->addWidget(memory_, kMemoryShare);
    connect(memory_, &LaneStack::hovered, this, &TrainingCompare::sayStep);
    connect(align_, &SegmentedControl::currentChanged, this, &TrainingCompare::showStep);
    connect(steps_, &QComboBox::currentIndexChanged, this, [this](int index) {
        if (!filling_ && index >= 0) {
            step_ = steps_->itemData(index).toLongLong();
            load();
        }
    });
}

void TrainingCompare::buildLosses() {
    losses_ = new LaneStack(lossTime_, LaneStack::WithRuler, this);
    losses_->setKeptOpen(1);
    loss_ = new SeriesLane(tr("Loss"), tr("A solid, B dashed, smoothed %1").arg(kCompareSmoothing), lossTime_, losses_);
    loss_->setPlotHeight(kLeastLossPlot, kLossPlot);
    lossAxis_ = new SegmentedControl({tr("Steps"), tr("Tokens"), tr("Time")}, loss_);
    lossAxis_->setAccessibleName(tr("Losses over"));
    lossAxis_->setFixedHeight(20);
    loss_->addHeaderControl(lossAxis_);
    losses_->addLane(loss_);
    static_cast<QVBoxLayout*>(layout())->addWidget(losses_, kLossShare);
    connect(losses_, &LaneStack::hovered, this, &TrainingCompare::sayLoss);
    connect(lossAxis_, &SegmentedControl::currentChanged, this, [this] {
        lossTime_->reset({0, 1}); // cursor and range belong to the axis before
        load();
    });
}

QList<QWidget*> TrainingCompare::stops() const {
    return QList<QWidget*>{parts_} + memory_->focusStops() + losses_->focusStops();
}

void TrainingCompare::setRuns(TrainingSide a, TrainingSide b) {
    const bool others = a.run.id != a_.run.id || b.run.id != b_.run.id;
    const bool grown = others || a.timeline != a_.timeline || b.timeline != b_.timeline;
    a_ = std::move(a);
    b_ = std::move(b);
    if (others) {
        step_ = 0;
        pair_.reset();
        curveA_.reset();
        curveB_.reset();
        stepTime_->reset({0, 1});
        lossTime_->reset({0, 1});
    }
    if (grown) {
        load();
    }
}

/// Everything on a worker. A step that is shown stays as it is while its runs go on.
void TrainingCompare::load() {
    const bool keep =
        pair_ != nullptr && (pair_->b || b_.timeline == nullptr) && (step_ == 0 || pair_->a.values.step == step_);
    job_.start(
        [a = a_, b = b_, axis = axis(), step = step_, kept = keep ? pair_ : nullptr] {
            Built built{curveOf(a, axis), curveOf(b, axis), kept, {}, kept != nullptr};
            if (a.timeline != nullptr) {
                built.offered = offeredSteps(*a.timeline);
            }
            if (kept == nullptr && !built.offered.empty()) {
                built.pair = stepPair(a.timeline, step > 0 ? step : *highestStep(*a.timeline), b.timeline);
            }
            return built;
        },
        [this, runs = std::pair(a_.run.id, b_.run.id), axis = axis()](Built built) {
            if (runs == std::pair(a_.run.id, b_.run.id) && axis == this->axis()) {
                take(std::move(built));
            }
        });
}

void TrainingCompare::take(Built built) {
    curveA_ = std::move(built.a);
    curveB_ = std::move(built.b);
    pair_ = std::move(built.pair);
    fillSteps(built.offered);
    if (!built.sameStep) {
        showStep();
    }
    showLosses();
}

void TrainingCompare::fillSteps(const std::vector<std::int64_t>& offered) {
    filling_ = true;
    steps_->clear();
    for (const std::int64_t step : offered) {
        steps_->addItem(tr("Step %1").arg(countText(step)), QVariant::fromValue<qlonglong>(step));
    }
    if (pair_ != nullptr) {
        steps_->setCurrentIndex(steps_->findData(QVariant::fromValue<qlonglong>(pair_->a.values.step)));
    }
    steps_->setEnabled(!offered.empty());
    filling_ = false;
}

void TrainingCompare::showStep() {
    memory_->setVisible(pair_ != nullptr);
    align_->setEnabled(pair_ != nullptr && pair_->b.has_value());
    if (pair_ == nullptr) {
        note_->setText(a_.timeline == nullptr ? tr("Reading the events of #%1.").arg(a_.run.id)
                       : steps_->count() == 0 ? tr("#%1 has no step yet.").arg(a_.run.id)
                                              : tr("The layers of this step of #%1 were not recorded.").arg(a_.run.id));
        return;
    }
    const base::TimeNs longest =
        byPhase() || !pair_->b ? pair_->a.length() : std::max(pair_->a.length(), pair_->b->length());
    if (stepTime_->extent().end != longest) {
        stepTime_->reset({0, longest});
    }
    parts_->setRows({stepPhaseRow(pair_->a.anatomy), stepLayerRow(pair_->a.anatomy)});
    showSide(laneA_, pair_->a, true);
    laneB_->setVisible(pair_->b.has_value());
    if (pair_->b) {
        showSide(laneB_, *pair_->b, false);
    }
    sayStep();
}

/// Both have one scale.
void TrainingCompare::showSide(StepLane* lane, const StepSide& side, bool a) {
    const StepPairPtr pair = pair_;
    const bool phased = !a && byPhase();
    lane->setTitle(QStringLiteral("#%1  %2").arg((a ? a_ : b_).run.id).arg(techniquesText(side.anatomy)));
    lane->setNote(phased ? tr("step %1, drawn in A’s phases").arg(countText(side.values.step))
                         : tr("step %1").arg(countText(side.values.step)));
    lane->setFacts(sideFacts(side, pair->top()));
    lane->setModels([pair, a, phased](const AxisMap& axis, int columns) {
        return stepStack(a ? pair->a : *pair->b, phased ? &pair->phases : nullptr, axis, columns);
    });
    lane->setTop(pair->top());
    lane->setPeak(stepPeak(side, phased ? &pair->phases : nullptr));
    lane->setGuides(phaseBorders(a || phased ? pair->a.anatomy : side.anatomy));
    lane->setSpoken([this, lane] { return lane->title() + QStringLiteral(". ") + note_->text(); });
}

void TrainingCompare::showLosses() {
    using Mark = LaneSeries::Mark;
    std::vector<LaneSeries> series;
    std::optional<std::pair<double, double>> span;
    base::TimeNs end = 0;
    for (const bool raw : {true, false}) {
        for (const bool a : {false, true}) { // A lies on top
            const auto& curve = a ? curveA_ : curveB_;
            if (curve == nullptr || curve->raw.empty()) {
                continue;
            }
            const QString name = raw ? (a ? tr("A raw") : tr("B raw")) : (a ? tr("A smoothed") : tr("B smoothed"));
            series.push_back(compareSeries(name, curve, raw ? &LossCurve::raw : &LossCurve::smoothed,
                                           raw ? Mark::Thin
                                           : a ? Mark::Bold
                                               : Mark::Dashed,
                                           a ? colorA : colorB));
            span = joined(span, (raw ? curve->raw : curve->smoothed).span());
            end = std::max(end, curve->end);
        }
    }
    loss_->setSeries(std::move(series), span ? plotScale(span->first, span->second, 3) : PlotScale{});
    const std::array<QString, 3> leads{tr("Step"), tr("Tokens"), tr("Time")};
    const std::array<base::TimeNs, 3> lengths{kStepLength, kTokenLength, 0};
    losses_->ruler()->setLead(leads[static_cast<std::size_t>(axis())]);
    losses_->ruler()->setCounted(lengths[static_cast<std::size_t>(axis())]);
    const TimeRange extent{0, std::max<base::TimeNs>(kStepLength, end + end / 50)};
    if (lossTime_->extent().length() <= 1) {
        lossTime_->reset(extent); // the first losses on this axis
    } else if (!(lossTime_->extent() == extent)) {
        const bool all = lossTime_->showsAll();
        lossTime_->setExtent(extent);
        if (all) {
            lossTime_->fitAll();
        }
    }
    sayLoss();
}

void TrainingCompare::sayStep() {
    if (pair_ == nullptr) {
        return;
    }
    std::optional<base::TimeNs> at = stepTime_->cursor();
    for (const TimeStrip* strip : {static_cast<const TimeStrip*>(laneA_), static_cast<const TimeStrip*>(laneB_),
                                   static_cast<const TimeStrip*>(parts_)}) {
        at = strip->hovered() ? strip->hovered() : at;
    }
    const profiler::StepAnatomy& step = pair_->a.anatomy;
    if (step.peak.maxTotal == 0) {
        note_->setText(tr("The memory of this step was not recorded."));
        return;
    }
    const QString text =
        stepReadout(*pair_, at.value_or(step.peak.maxTime - step.begin), byPhase(), StepChange::BMinusA);
    note_->setText(text);
    emit readoutChanged(text);
}

void TrainingCompare::sayLoss() {
    if (curveA_ == nullptr) {
        loss_->setFacts(curveB_ == nullptr ? tr("Reading the events of both runs.") : QString());
        return;
    }
    // Without a cursor the losses are those where the shorter run ends: there both have one.
    const bool both = curveB_ != nullptr && curveB_->end > 0;
    base::TimeNs at = both ? std::min(curveA_->end, curveB_->end) : curveA_->end;
    at = loss_->hovered().value_or(lossTime_->cursor().value_or(at));
    const QString text = lossReadout(*curveA_, curveB_.get(), axis(), at);
    loss_->setFacts(text);
    if (loss_->hovered() || lossTime_->cursor()) {
        emit readoutChanged(text);
    }
}

} // namespace vitrine::ui
