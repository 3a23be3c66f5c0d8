// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/compare/rl_compare_page.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/rl/rl_step_text.h"
#include "ui/views/compare/titled_box.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

namespace {

constexpr int kLeastComparedPlot = 48, kRewardPlot = 120, kDifferencePlot = 90, kSecondsPlot = 90;
constexpr int kTableShare = 11, kLanesShare = 9;

using Curve = PlotSeries RlCurves::*;

QColor inkOfA(const ThemeTokens& t) {
    return t.compareA;
}

QColor inkOfB(const ThemeTokens& t) {
    return t.compareB;
}

LaneSeries comparedSeries(const RlCurvesPtr& curves, bool a, Curve member, const QString& name) {
    const bool dots = member == &RlCurves::evaluation;
    LaneSeries out;
    out.name = name;
    out.samples = [curves, member](const AxisMap& axis, int columns) {
        return ((*curves).*member).samples(axis, columns);
    };
    out.color = a ? inkOfA : inkOfB;
    out.mark = dots ? (a ? LaneSeries::Mark::Dot : LaneSeries::Mark::Square)
                    : (a ? LaneSeries::Mark::Thin : LaneSeries::Mark::Dashed);
    out.letter = dots ? QChar() : QLatin1Char(a ? 'A' : 'B');
    return out;
}

std::optional<std::pair<double, double>> spanOfBoth(const RlCurvesPtr& a, const RlCurvesPtr& b,
                                                    std::initializer_list<Curve> members) {
    std::optional<std::pair<double, double>> out;
    for (const RlCurvesPtr& curves : {a, b}) {
        for (const Curve member : members) {
            if (const auto span = ((*curves).*member).span()) {
                out = out ? std::pair(std::min(out->first, span->first), std::max(out->second, span->second)) : *span;
            }
        }
    }
    return out;
}

} // namespace

RlComparePage::RlComparePage(QWidget* parent)
    : QWidget(parent), model_(new FlatTreeModel(this)), time_(new TimeCursor(this)), job_(this) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(buildTable(), kTableShare);
    buildLanes();
    row->addWidget(stack_, kLanesShare);
    connect(time_, &TimeCursor::cursorChanged, this, &RlComparePage::sayStep);
    connect(stack_, &LaneStack::hovered, this, &RlComparePage::sayStep);
}

QWidget* RlComparePage::buildTable() {
    note_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, true, this);
    note_->setElide(true);
    view_ = new QTableView(this);
    setUpTwin(view_, model_, tr("Figures of both runs by step"));
    view_->setSortingEnabled(false); // phases stand below their step
    view_->horizontalHeader()->setStretchLastSection(false);
    return titledBox(note_, view_, this, Surface::Top | Surface::Right);
}

void RlComparePage::buildLanes() {
    stack_ = new LaneStack(time_, LaneStack::WithRuler, this);
    stack_->ruler()->setCounted(kStepLength);
    stack_->ruler()->setLead(tr("Step"));
    reward_ = new SeriesLane(tr("Reward"), tr("A solid, B dashed; evaluations as dots and squares"), time_, stack_);
    difference_ = new SeriesLane(tr("Log-probability difference"), tr("mean, log scale"), time_, stack_);
    seconds_ = new SeriesLane(tr("Time of a step"), tr("seconds"), time_, stack_);
    for (const auto& [lane, share] : {std::pair(reward_, kRewardPlot), std::pair(difference_, kDifferencePlot),
                                      std::pair(seconds_, kSecondsPlot)}) {
        lane->setPlotHeight(kLeastComparedPlot, share);
        stack_->addLane(lane);
    }
    stack_->setKeptOpen(3);
}

QList<QWidget*> RlComparePage::stops() const {
    return QList<QWidget*>{view_} + stack_->focusStops();
}

void RlComparePage::setRuns(const sessions::RunInfo& a, const TimelinePtr& timelineA, const sessions::RunInfo& b,
                            const TimelinePtr& timelineB) {
    if (const std::pair runs(a.id, b.id); runs != runs_) {
        runs_ = runs;
        words_ = {};
        model_->setTree(std::make_shared<FlatTree>());
    }
    if (timelineA == nullptr || timelineB == nullptr) {
        note_->setText(tr("Reading the events of both runs."));
        return;
    }
    job_.start(
        [a, b, timelineA, timelineB] {
            const RlRunPtr left = RlRun::make(a, *timelineA), right = RlRun::make(b, *timelineB);
            return Built{RlCurves::make(left, RlAxis::Steps), RlCurves::make(right, RlAxis::Steps),
                         rlCompareWords(*left, *right), rlCompareTable(*left, *right), rlCompareNote(*left, *right)};
        },
        [this, runs = runs_](Built built) {
            if (runs == runs_) {
                take(std::move(built));
            }
        });
}

void RlComparePage::take(Built built) {
    a_ = std::move(built.a);
    b_ = std::move(built.b);
    words_ = std::move(built.words);
    note_->setText(built.note);
    model_->setTree(std::move(built.table));
    view_->resizeColumnsToContents();
    for (int i = 0; i < model_->columnCount(); ++i) {
        view_->horizontalHeader()->setSectionResizeMode(i, i == 0 ? QHeaderView::Stretch : QHeaderView::Interactive);
    }
    showCurves();
    emit wordsChanged();
}

void RlComparePage::showCurves() {
    const auto bothOf = [this](std::initializer_list<std::pair<Curve, QString>> members) {
        std::vector<LaneSeries> out;
        for (const auto& [member, name] : members) {
            for (const bool a : {false, true}) { // A lies over B
                out.push_back(comparedSeries(a ? a_ : b_, a, member, name));
            }
        }
        return out;
    };
    const auto rewards = spanOfBoth(a_, b_, {&RlCurves::reward, &RlCurves::evaluation});
    reward_->setSeries(bothOf({{&RlCurves::reward, tr("raw reward")}, {&RlCurves::evaluation, tr("evaluation")}}),
                       rewards ? plotScale(rewards->first, rewards->second, 3) : plotScale(0, 1, 2));
    const auto differences = spanOfBoth(a_, b_, {&RlCurves::difference});
    difference_->setSeries(bothOf({{&RlCurves::difference, tr("difference")}}),
                           differences ? decadeScale(differences->first, differences->second, 3)
                                       : decadeScale(-3, -1, 3));
    const auto seconds = spanOfBoth(a_, b_, {&RlCurves::seconds});
    seconds_->setSeries(bothOf({{&RlCurves::seconds, tr("seconds")}}),
                        plotScale(0, seconds ? std::max(seconds->second, 1e-6) : 1, 2));
    const base::TimeNs end = std::max(a_->run->end(RlAxis::Steps), b_->run->end(RlAxis::Steps));
    const TimeRange extent{0, std::max<base::TimeNs>(kStepLength, end + end / 25)};
    if (!(time_->extent() == extent)) {
        const bool all = time_->showsAll() || time_->extent().length() <= 1;
        all ? time_->reset(extent) : time_->setExtent(extent);
    }
    sayStep();
}

/// The step under the pointer or the cursor.
void RlComparePage::sayStep() {
    if (a_ == nullptr) {
        return;
    }
    std::optional<base::TimeNs> at = time_->cursor();
    for (const SeriesLane* lane : {reward_, difference_, seconds_}) {
        at = lane->hovered() ? lane->hovered() : at;
    }
    const auto index = at ? a_->run->stepAt(*at, RlAxis::Steps) : std::nullopt;
    if (index) {
        emit readoutChanged(rlReadout(RlStepPair::at(a_->run, b_->run, a_->run->number(*index))));
    }
}

} // namespace vitrine::ui
