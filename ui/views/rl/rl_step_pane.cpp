// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_step_pane.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/rl/rl_step_text.h"
#include "ui/views/finetune/section_head.h"
#include "ui/views/rl/rl_step_legend.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/part_strip.h"
#include "ui/widgets/timeline/step_lane.h"

namespace vitrine::ui {

namespace {

constexpr int kStepPlot = 96, kLowStepPlot = 80, kHeldHeight = 20;

StripPart phasePart(const RlPhase& phase, const RlStepMemory& step, std::int64_t updates) {
    StripPart out;
    out.range = {phase.range.begin - step.range.begin, phase.range.end - step.range.begin};
    const QString name = rlPhaseName(phase, updates);
    out.label = QStringLiteral("%1 %2").arg(name, durationText(phase.range.length()));
    out.shortLabel = name;
    out.dark = true;
    out.tip = QObject::tr("%1, peak %2").arg(out.label, bytesText(phase.peak.maxTotal));
    return out;
}

/// Where the pool is there, and the stretches between in which its memory belongs to the trainer.
PartRow poolRow(const RlStepMemory& step) {
    PartRow row{QObject::tr("KV pool"), {}, {}, false};
    base::TimeNs end = 0;
    std::uint64_t given = 0;
    const auto asleep = [&](base::TimeNs until) {
        if (until <= end || given == 0) {
            return;
        }
        StripPart part{{end, until},
                       QObject::tr("asleep: %1 given back to the trainer").arg(bytesText(given)),
                       QObject::tr("asleep"),
                       false,
                       false,
                       {}};
        if (const QString held = rlAsleepText(step); !held.isEmpty()) {
            part.tip = QObject::tr("asleep: %1").arg(held);
        }
        row.parts.push_back(std::move(part));
    };
    for (const RlPoolSpan& span : step.pool) {
        asleep(span.range.begin - step.range.begin);
        const TimeRange range{span.range.begin - step.range.begin, span.range.end - step.range.begin};
        row.parts.push_back({range, QObject::tr("awake, %1").arg(bytesText(span.bytes)), QObject::tr("awake"), true,
                             false, QObject::tr("The pool of pages takes %1").arg(bytesText(span.bytes))});
        end = range.end;
        given = span.bytes;
    }
    asleep(step.length());
    return row;
}

} // namespace

RlStepPane::RlStepPane(QWidget* parent)
    : QWidget(parent), time_(new TimeCursor(this)), head_(new SectionHead(tr("Memory of both roles"), this)),
      open_(new QPushButton(tr("Open in"), head_)), highest_(new QPushButton(head_)), pages_(new QStackedWidget(this)),
      nothing_(new EmptyState(pages_)), held_(nullptr), stack_(nullptr), bands_(nullptr), lane_(nullptr),
      legend_(nullptr), job_(this) {
    build();
}

void RlStepPane::build() {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    nothing_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored); // the plot says how high it is
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    open_->setToolTip(tr("The phase under the cursor in another view"));
    setControlHeight(open_, 20);
    setControlHeight(highest_, 20);
    highest_->hide();
    head_->addControl(highest_);
    head_->addControl(open_);
    connect(highest_, &QPushButton::clicked, this, [this] {
        if (const auto highest = run_ != nullptr ? rlHighestPeak(*run_) : std::nullopt) {
            emit stepWanted(run_->number(*highest));
        }
    });
    held_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, false, this);
    held_->setElide(true);
    held_->setFixedHeight(kHeldHeight);
    held_->setContentsMargins(11, 0, 12, 0);
    auto* page = new Surface(Surface::Fill::Canvas, Surface::None, pages_);
    auto* rows = new QVBoxLayout(page);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(0);
    auto* row = new QHBoxLayout;
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(8);
    stack_ = new LaneStack(time_, LaneStack::NoStrips, page);
    bands_ = new PartStrip(tr("Phases and the pool of pages"), time_, stack_);
    stack_->addStrip(bands_, true);
    lane_ = new StepLane(tr("Memory of the step"), time_, stack_);
    lane_->setHeader(false);
    lane_->setPlotHeight(kStepPlot, 1);
    stack_->addLane(lane_);
    stack_->addRuler()->setLead(tr("Time"));
    legend_ = new RlStepLegend(page);
    row->addWidget(stack_, 1);
    row->addWidget(legend_->column(), 0, Qt::AlignTop);
    rows->addWidget(legend_->strip());
    rows->addLayout(row, 1);
    pages_->addWidget(page);
    pages_->addWidget(nothing_);
    column->addWidget(head_);
    column->addWidget(held_);
    column->addWidget(pages_, 1);
    lane_->setSpoken([this] { return headText(); });
    connect(stack_, &LaneStack::hovered, this, &RlStepPane::showLegend);
    connect(time_, &TimeCursor::cursorChanged, this, &RlStepPane::showLegend);
    connect(lane_, &StepLane::peakClicked, this, [this] { openPhase(QStringLiteral("memory")); });
    connect(lane_, &StepLane::placeOpened, this, [this](qint64 place) {
        time_->setCursor(place);
        openPhase(QStringLiteral("memory"));
    });
    connect(bands_, &PartStrip::partClicked, this, [this](int band) {
        if (band == 0) {
            openPhase(QStringLiteral("memory"));
        }
    });
    fillMenu();
    setStep(nullptr, nullptr, std::nullopt, {});
}

void RlStepPane::fillMenu() {
    auto* menu = new QMenu(open_);
    const std::array<std::pair<QString, QString>, 4> views{{{tr("Memory"), QStringLiteral("memory")},
                                                            {tr("Kernels"), QStringLiteral("kernels")},
                                                            {tr("KV cache"), QStringLiteral("kv-cache")},
                                                            {tr("Batching"), QStringLiteral("batching")}}};
    for (const auto& [name, id] : views) {
        menu->addAction(name, this, [this, view = id] { openPhase(view); });
    }
    open_->setMenu(menu);
    connect(stack_, &LaneStack::menuWanted, this, [this, menu](const QPoint& position, qint64 place) {
        time_->setCursor(place);
        menu->popup(position);
    });
}

/// With the phase at the cursor, or the one with the peak.
void RlStepPane::openPhase(const QString& view) {
    if (memory_ == nullptr) {
        return;
    }
    const RlPhase* phase = time_->cursor()           ? memory_->phaseAt(inRun(*time_->cursor()))
                           : memory_->phases.empty() ? nullptr
                                                     : &memory_->phases[memory_->peakPhase];
    const TimeRange range = phase != nullptr ? phase->range : memory_->range;
    const base::TimeNs at = time_->cursor()    ? inRun(*time_->cursor())
                            : phase != nullptr ? phase->peak.maxTime
                                               : memory_->peak.maxTime;
    emit viewWanted(view, range.begin, range.end, at);
}

void RlStepPane::setStep(const TimelinePtr& timeline, const RlRunPtr& run, std::optional<std::size_t> index,
                         const QString& nothing) {
    if (timeline == timeline_ && run == run_ && index == index_) {
        return;
    }
    run_ = run;
    timeline_ = timeline;
    index_ = index;
    if (timeline == nullptr || run == nullptr || !index) {
        job_.cancel();
        take(nullptr);
        nothing_->set(nothing);
        return;
    }
    job_.start([timeline, run, at = *index] { return rlStepMemory(timeline, *run, at); },
               [this](RlStepMemoryPtr memory) { take(std::move(memory)); });
}

void RlStepPane::take(RlStepMemoryPtr memory) {
    const bool same = memory != nullptr && memory_ != nullptr && memory->step == memory_->step;
    memory_ = std::move(memory);
    emit memoryChanged();
    showHighest();
    const bool shown = memory_ != nullptr && memory_->hasMemory();
    pages_->setCurrentIndex(shown ? 0 : 1);
    open_->setEnabled(memory_ != nullptr);
    if (memory_ == nullptr) {
        head_->setTitle(tr("Memory of both roles"));
        head_->setRight({});
        held_->hide();
        nothing_->set(timeline_ != nullptr ? tr("This run recorded no steps.") : QString());
        return;
    }
    head_->setTitle(tr("Memory of both roles in step %1").arg(countText(memory_->step)));
    held_->setText(shown ? rlHeldText(*memory_) : QString());
    held_->setToolTip(held_->text());
    held_->setVisible(!held_->text().isEmpty());
    head_->setRight(shown ? headText() : QString());
    if (!shown) {
        showMissing();
        return;
    }
    if (!same || time_->extent().end != memory_->length()) {
        time_->reset({0, memory_->length()});
    }
    showBands();
    showLane();
    showLegend();
}

/// The peak of a step is not that of the run, which a way leads to.
void RlStepPane::showHighest() {
    const auto highest = memory_ != nullptr && run_ != nullptr ? rlHighestPeak(*run_) : std::nullopt;
    highest_->setVisible(highest && run_->number(*highest) != memory_->step);
    highest_->setText(highest ? tr("Peak of the run: step %1").arg(countText(run_->number(*highest))) : QString());
    highest_->setToolTip(tr("Go to the step in which this run held the most memory"));
}

/// What to do about a step whose memory was not recorded.
void RlStepPane::showMissing() {
    const QString words = tr("Memory was not recorded in step %1.").arg(countText(memory_->step));
    const std::optional<std::int64_t> other = memory_->nearestWithMemory;
    nothing_->set(words, other ? tr("Go to step %1").arg(countText(*other)) : QString(), [this, other] {
        if (other) {
            emit stepWanted(*other);
        }
    });
    nothing_->setOther(tr("Record every step"), [this] { emit recordingWanted(); });
}

void RlStepPane::showBands() {
    PartRow phases{tr("Phase"), {}, {}, true};
    const auto updates = std::ranges::count(memory_->phases, RlPhaseKind::Update, &RlPhase::kind);
    for (const RlPhase& phase : memory_->phases) {
        phases.parts.push_back(phasePart(phase, *memory_, updates));
    }
    bands_->setRows({std::move(phases), poolRow(*memory_)});
}

void RlStepPane::showLane() {
    const RlStepMemoryPtr step = memory_;
    // The budget is on the scale where it does not make the rest flat.
    const bool near = step->budget && *step->budget < 2 * step->peak.maxTotal;
    lane_->setModels([step](const AxisMap& axis, int columns) { return rlStepStack(*step, axis, columns); });
    lane_->setTop(near ? std::max(*step->budget, step->peak.maxTotal) : step->peak.maxTotal);
    lane_->setBudget(near ? step->budget : std::nullopt);
    profiler::MemoryColumn peak = step->peak;
    peak.maxTime -= step->range.begin;
    lane_->setPeak(peak);
    std::vector<base::TimeNs> guides;
    for (std::size_t i = 1; i < step->phases.size(); ++i) {
        guides.push_back(step->phases[i].range.begin - step->range.begin);
    }
    lane_->setGuides(std::move(guides));
    std::vector<LaneNote> notes;
    if (step->otherPeakPhase) {
        const RlPhase& other = step->phases[*step->otherPeakPhase];
        const std::uint64_t pool = step->pool.empty() ? 0 : step->pool.front().bytes;
        QString words = tr("%1 here").arg(bytesText(other.peak.maxTotal));
        if (other.kind != RlPhaseKind::Rollout && pool > 0) {
            const std::uint64_t awake = other.peak.maxTotal + pool;
            words += tr("; with the pool awake %1").arg(bytesText(awake));
            words += step->budget && awake > *step->budget ? tr(", %1 over").arg(bytesText(awake - *step->budget))
                                                           : QString();
        }
        notes.push_back({other.peak.maxTime - step->range.begin, other.peak.maxTotal, words, false});
    }
    lane_->setNotes(std::move(notes));
}

void RlStepPane::showLegend() {
    if (memory_ == nullptr || !memory_->hasMemory()) {
        return;
    }
    const std::optional<base::TimeNs> place = lane_->hovered() ? lane_->hovered() : time_->cursor();
    const QString head = place ? tr("at %1").arg(instantText(*place)) : tr("largest in the step");
    legend_->setParts(head, place ? rlStepParts(*memory_, inRun(*place)) : memory_->most, memory_->most);
}

QString RlStepPane::headText() const {
    if (memory_ == nullptr || !memory_->hasMemory()) {
        return {};
    }
    QString out = memory_->phases.empty()
                      ? tr("peak %1").arg(bytesText(memory_->peak.maxTotal))
                      : tr("peak %1 in %2")
                            .arg(bytesText(memory_->peak.maxTotal),
                                 rlPhaseName(memory_->phases[memory_->peakPhase], run_->demand().updates));
    if (memory_->budget) {
        const auto spare =
            static_cast<std::int64_t>(*memory_->budget) - static_cast<std::int64_t>(memory_->peak.maxTotal);
        out += spare >= 0 ? tr(", %1 spare").arg(bytesText(static_cast<std::uint64_t>(spare)))
                          : tr(", %1 over the budget").arg(bytesText(static_cast<std::uint64_t>(-spare)));
    }
    return out;
}

void RlStepPane::setLow(bool low) {
    legend_->setLow(low);
    lane_->setPlotHeight(low ? kLowStepPlot : kStepPlot, 1);
}

QString RlStepPane::heldText() const {
    return held_->isHidden() ? QString() : held_->text();
}

QString RlStepPane::emptyText() const {
    return pages_->currentIndex() == 1 ? nothing_->text() : QString();
}

QList<QWidget*> RlStepPane::stops() const {
    return pages_->currentIndex() == 0 ? QList<QWidget*>{bands_, lane_} : QList<QWidget*>{};
}

} // namespace vitrine::ui
