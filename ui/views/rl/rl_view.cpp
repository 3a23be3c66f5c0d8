// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_view.h"

#include <QCheckBox>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/resource_path.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/views/rl/rl_lanes.h"
#include "ui/views/rl/rl_panel.h"
#include "ui/views/rl/rl_samples_page.h"
#include "ui/views/rl/rl_step_pane.h"
#include "ui/widgets/timeline/bar_lane.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/part_strip.h"
#include "ui/widgets/timeline/series_lane.h"
#include "ui/widgets/timeline/step_lane.h"

namespace vitrine::ui {

namespace {

constexpr std::chrono::milliseconds kRlRefreshEvery{100};
constexpr double kFreeRlShare = 0.027; ///< of the axis, right of the last value: room for the letters

/// An RL run other than the shown one, the newest; 0: there is none.
sessions::RunId otherRlRun(const std::vector<sessions::RunInfo>& runs, sessions::RunId shown) {
    sessions::RunId other = 0;
    for (const sessions::RunInfo& each : runs) {
        other = isRlRun(each) && each.id != shown ? each.id : other;
    }
    return other;
}

/// The session that comes with the program; empty: it does not.
QString recordedAblation() {
    try {
        return textOf(base::resourcePath("sessions/vitrine-rl-ablation.vitrine"));
    } catch (const base::BadInput&) {
        return {};
    }
}

} // namespace

RlView::RlView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("rl"), tr("RL"), context, parent), time_(new TimeCursor(this)), panel_(new RlPanel),
      job_(this),
      pace_(kRlRefreshEvery, [this] { refresh(); }, this), sampling_(this), averaging_(this), referring_(this) {
    buildHeader();
    buildBody();
    makeTwin(tr("Steps of the run"));
    connect(header(), &ViewHeader::tableToggled, this, &RlView::updateTwin);
    connect(time_, &TimeCursor::cursorChanged, this, &RlView::updateStep);
    connect(time_, &TimeCursor::measuredChanged, this, &RlView::updatePanel);
    for (Lane* lane : lanes_->stack()->lanes()) {
        lane->installEventFilter(this);
    }
    connect(lanes_, &RlLanes::pointed, this, &RlView::updateStep);
    connect(step_, &RlStepPane::memoryChanged, this, &RlView::updateLimit);
    connect(panel_, &RlPanel::groupWanted, this, &RlView::groupBy);
    connect(panel_, &RlPanel::stepWanted, this, &RlView::chooseStep);
    connect(step_, &RlStepPane::stepWanted, this, &RlView::chooseStep);
    connect(step_, &RlStepPane::recordingWanted, this, [this] { wantExperimentWith(runs_.a, "profile", "light"); });
    connect(panel_, &RlPanel::samplesWanted, this, [this] { showPage(Samples); });
    connect(samplesPage_, &RlSamplesPage::groupChosen, this, [this](quint64 group) {
        group_ = group;
        showGroup();
    });
    connect(samplesPage_, &RlSamplesPage::orderChanged, this, &RlView::showGroup);
    connect(step_, &RlStepPane::viewWanted, this, [this](const QString& view, qint64 begin, qint64 end, qint64 at) {
        if (this->context().time != nullptr) {
            this->context().time->jumpTo({begin, end});
            this->context().time->setCursor(at);
        }
        emit openView(view);
    });
    followDocument();
}

void RlView::buildHeader() {
    pages_ = header()->addSegments({tr("Curves"), tr("Samples")}, tr("Page"));
    connect(pages_, &SegmentedControl::currentChanged, this, [this](int page) { showPage(static_cast<Page>(page)); });
    axes_ = header()->addSegments({tr("Steps"), tr("Time"), tr("Tokens")}, tr("Axis"));
    groups_ = header()->addCheck(tr("Groups"), true);
    groups_->setToolTip(tr("The middle half of the groups of A by their mean rewards, as a band"));
    reference_ = header()->addCheck(tr("Reference"), true);
    reference_->setToolTip(tr("The difference of a run of this session that samples with the weights that it trains"));
    connect(axes_, &SegmentedControl::currentChanged, this, [this] {
        time_->setMeasured({}); // places of another axis
        time_->setCursor(std::nullopt);
        refresh();
    });
    connect(groups_, &QCheckBox::toggled, this, [this](bool on) { lanes_->setBandShown(on); });
    connect(reference_, &QCheckBox::toggled, this, [this](bool on) { lanes_->setReferenceShown(on); });
}

void RlView::buildBody() {
    body_ = new QStackedWidget(this);
    auto* shown = new QWidget(body_);
    auto* rows = new QVBoxLayout(shown);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(0);
    content_ = new QStackedWidget(shown);
    rows->addWidget(buildSentence(shown));
    rows->addWidget(content_, 1);
    auto* page = new Surface(Surface::Fill::Canvas, Surface::None, content_);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    lanes_ = new RlLanes(time_, page);
    step_ = new RlStepPane(page);
    scroll_ = new QScrollArea(page);
    scroll_->setFrameShape(QFrame::NoFrame);
    scroll_->setWidgetResizable(true);
    scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll_->setFocusPolicy(Qt::NoFocus);
    scroll_->setWidget(lanes_->stack());
    column->addWidget(scroll_, 1);
    column->addWidget(step_);
    samplesPage_ = new RlSamplesPage(content_);
    content_->addWidget(page);
    content_->addWidget(samplesPage_);
    nothing_ = new EmptyState(body_);
    body_->addWidget(shown);
    body_->addWidget(nothing_);
    setBody(body_);
}

QWidget* RlView::inspector() {
    return panel_;
}

QWidget* RlView::inspectorHeader() {
    return panel_->header();
}

bool RlView::wantsInspector() const {
    return page() == Curves && a_ != nullptr && !a_->run->empty();
}

std::vector<sessions::RunId> RlView::shownRuns() const {
    std::vector<sessions::RunId> out{runA()};
    const sessions::RunInfo* other = runInfo(baseline());
    if (other != nullptr && isRlRun(*other)) {
        out.push_back(other->id);
    }
    return out;
}

bool RlView::settled() const {
    return !job_.busy() && !pace_.waiting() && !sampling_.busy() && !averaging_.busy() && !referring_.busy() &&
           step_->settled() && DocumentView::settled();
}

void RlView::activated() {
    DocumentView::activated();
    page() == Curves ? lanes_->reward()->setFocus() : samplesPage_->groups()->setFocus();
}

void RlView::refresh() {
    const sessions::RunInfo* info = runInfo(runA());
    const sessions::RunInfo* other = runInfo(baseline());
    const Runs runs{info != nullptr && isRlRun(*info) ? info->id : 0,
                    other != nullptr && isRlRun(*other) ? other->id : 0};
    if (runs == runs_ && live(runs_.a) && pace_.tooSoon()) {
        return;
    }
    if (!(runs == runs_)) {
        const bool otherA = runs.a != runs_.a;
        runs_ = runs;
        b_.reset();
        timelineB_.reset();
        if (otherA) {
            a_.reset();
            timeline_.reset();
            time_->reset({0, kStepLength});
        }
    }
    const TimelineState stateA = timelineOf(runs_.a), stateB = timelineOf(runs_.b);
    const bool failed = info != nullptr && (info->status == sessions::RunStatus::Failed ||
                                            info->status == sessions::RunStatus::OutOfMemory);
    showError(!stateA.error.isEmpty() ? stateA.error : failed && runs_.a != 0 ? textOf(info->error) : QString());
    if (!stateA.timeline) {
        job_.cancel();
        updateBody();
        return;
    }
    const bool complete = stateA.complete || live(runs_.a);
    if (!complete) {
        updateBody();
        return; // half of a run would be shown as one that was short
    }
    const TimelinePtr readB = runs_.b != 0 && (stateB.complete || live(runs_.b)) ? stateB.timeline : nullptr;
    const bool sameB = b_ != nullptr && readB == timelineB_ && b_->axis == chosenAxis(); // A alone goes on
    job_.start(
        [infoA = *info, timelineA = stateA.timeline, infoB = other != nullptr ? *other : sessions::RunInfo{}, readB,
         known = sameB ? b_ : nullptr, axis = chosenAxis()] {
            Built out{RlCurves::make(RlRun::make(infoA, *timelineA), axis), known, timelineA, readB};
            if (out.b == nullptr && readB != nullptr) {
                out.b = RlCurves::make(RlRun::make(infoB, *readB), axis);
            }
            return out;
        },
        ifStill(runs_, [this](Built built) { take(std::move(built)); }));
    updateReference();
    updateBody();
}

void RlView::take(Built built) {
    const bool first = a_ == nullptr;
    a_ = std::move(built.a);
    b_ = std::move(built.b);
    timeline_ = std::move(built.timeline);
    timelineB_ = std::move(built.timelineB);
    updateExtent();
    updateBody();
    if (first) {
        emit inspectorWanted();
    }
}

/// From 0 to the last step that is known of or to come, with room for the letters.
void RlView::updateExtent() {
    base::TimeNs end = kStepLength, halfStep = 0;
    for (const RlCurvesPtr& curves : {a_, b_}) {
        if (curves == nullptr) {
            continue;
        }
        if (const std::size_t steps = curves->run->size(); steps > 1) {
            halfStep = std::max(
                halfStep,
                (curves->run->place(steps - 1, curves->axis) - curves->run->place(steps - 2, curves->axis)) / 2);
        }
        end = std::max(end, curves->run->end(curves->axis));
        if (curves->axis == RlAxis::Steps) {
            end = std::max(end, curves->run->totalSteps().value_or(0) * kStepLength);
        }
    }
    end += halfStep; // of the bar of the last step
    const TimeRange extent{0, end + static_cast<base::TimeNs>(std::ceil(static_cast<double>(end) * kFreeRlShare))};
    if (!(extent == time_->extent())) {
        time_->showsAll() ? time_->reset(extent) : time_->setExtent(extent);
    }
}

QString RlView::whyNothing() const {
    const sessions::RunInfo* info = runInfo(runs_.a);
    if (info == nullptr) {
        const bool any = document() != nullptr && std::ranges::any_of(document()->runs(), isRlRun);
        return any ? tr("The chosen run is no reinforcement learning.")
                   : tr("No reinforcement learning run in this session.");
    }
    if (a_ != nullptr && (!a_->run->empty() || live(runs_.a))) {
        return {}; // axes wait for their values
    }
    if (job_.busy() || !read(runs_.a)) {
        return tr("Reading the events of this run.");
    }
    return info->error.empty()
               ? tr("This run recorded no steps: it was recorded on Meta or with the profile off, and has no results.")
               : tr("The run ended before its first step: %1").arg(textOf(info->error));
}

QString RlView::nothingText() const {
    return body_->currentWidget() == nothing_ ? nothing_->text() : QString();
}

void RlView::updateBody() {
    const QString nothing = whyNothing();
    body_->setCurrentIndex(nothing.isEmpty() ? 0 : 1);
    const sessions::RunId other = document() != nullptr ? otherRlRun(document()->runs(), runs_.a) : 0;
    if (runs_.a == 0 && other != 0) {
        nothing_->set(nothing, tr("Open a reinforcement learning run"), [this, other] { document()->setRunA(other); });
    } else if (runs_.a == 0) {
        nothing_->set(nothing, tr("Start one"), [this] { emit openView(QStringLiteral("run")); });
        if (const QString recorded = recordedAblation(); !recorded.isEmpty()) {
            nothing_->setOther(tr("Open the recorded ablation"), [this, recorded] { emit fileWanted(recorded); });
        }
    } else {
        nothing_->set(nothing);
    }
    header()->setFacts(a_ != nullptr ? rlDemandText(a_->run->demand()) : QString());
    header()->setTableButton(a_ != nullptr && !a_->run->empty());
    RlShown shown;
    shown.runA = runs_.a;
    shown.runB = runs_.b;
    shown.a = a_;
    shown.b = b_;
    shown.live = live(runs_.a);
    if (found_) {
        shown.reference = found_->difference;
        shown.referenceName = tr("the same weights in both roles");
    }
    reference_->setEnabled(shown.reference.has_value());
    lanes_->setRuns(std::move(shown));
    updateStep();
    updateLimit();
    updateTwin();
    emit availabilityChanged();
}

void RlView::updateStep() {
    const RlRunPtr a = a_ != nullptr ? a_->run : nullptr, b = b_ != nullptr ? b_->run : nullptr;
    pair_ = RlStepPair::at(a, b, lanes_->shownStep().value_or(-1));
    lanes_->showStep(pair_);
    setReadout(rlReadout(pair_));
    // What takes work or room follows the cursor and not the pointer.
    const RlStepPair chosen = RlStepPair::at(a, b, lanes_->chosenStep().value_or(-1));
    updatePanel();
    updateSamples();
    step_->setStep(timeline_, a, chosen.i,
                   a != nullptr && chosen.j ? tr("A has no step %1.").arg(chosen.number()) : QString());
}

/// The figures of the chosen step, or the means of the steps that are measured.
void RlView::updatePanel() {
    const RlRunPtr a = a_ != nullptr ? a_->run : nullptr, b = b_ != nullptr ? b_->run : nullptr;
    range_ = lanes_->measuredSteps();
    if (!range_) {
        averaging_.cancel();
        panel_->setStep(RlStepPair::at(a, b, lanes_->chosenStep().value_or(-1)), time_->cursor().has_value());
        return;
    }
    averaging_.start([a, b, range = *range_] { return rlMeanTable(a, b, range.first, range.second); },
                     [this, range = *range_, both = b != nullptr](const FlatTreePtr& means) {
                         if (range_ == range) {
                             panel_->setMeans(means, range.first, range.second, both);
                         }
                     });
}

void RlView::updateTwin() {
    if (header()->tableShown() && a_ != nullptr) {
        twinModel()->setTree(rlStepTable(*a_->run));
        twin()->resizeColumnsToContents();
    }
}

bool RlView::perform(const QString& action) {
    if (action == QLatin1String("view.smooth")) {
        smooth_ = !smooth_;
        lanes_->setSmooth(smooth_);
        return true;
    }
    if (action == QLatin1String("zoom.follow")) {
        time_->setCursor(std::nullopt); // the last step is shown, and the next ones when they come
        return true;
    }
    if (page() == Samples && (action == QLatin1String("select.next") || action == QLatin1String("select.previous"))) {
        groupBy(action == QLatin1String("select.next") ? 1 : -1);
        return true;
    }
    if (action == QLatin1String("select.next") || action == QLatin1String("select.previous")) {
        stepBy(action == QLatin1String("select.next") ? 1 : -1);
        return true;
    }
    return DocumentView::perform(action);
}

QString RlView::whyNot(const QString& action) const {
    return action == QLatin1String("view.smooth") && page() == Curves ? QString() : DocumentView::whyNot(action);
}

QList<LaneStack*> RlView::laneStacks() const {
    return page() == Curves ? QList<LaneStack*>{lanes_->stack(), step_->stack()} : QList<LaneStack*>{};
}

QList<QWidget*> RlView::bodyStops() const {
    if (page() == Samples) {
        return samplesPage_->stops();
    }
    return lanes_->stack()->focusStops() + step_->stops();
}

QString RlView::whyText() const {
    return panel_->asText();
}

} // namespace vitrine::ui
