// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_lanes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/timeline/bar_lane.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/pair_facts.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

namespace {

// Least heights of the plots, and the shares in which they get what is left.
constexpr int kLeastRlPlot = 64, kLeastLowPlot = 80; ///< in low windows they scroll
constexpr int kRewardShare = 89, kEvaluationShare = 69, kDifferenceShare = 95, kLengthShare = 85, kPhaseShare = 75;
constexpr double kDrawnPart = 0.01; ///< of the largest step, from which on a part of its time is drawn

QColor colorOfA(const ThemeTokens& t) {
    return t.compareA;
}

QColor colorOfB(const ThemeTokens& t) {
    return t.compareB;
}

/// "mean of 1,024 answers"
QString rewardNote(const RlDemand& demand, bool band) {
    const QString mean = demand.answers() > 0 ? QObject::tr("mean of %1 answers").arg(countText(demand.answers()))
                                              : QObject::tr("mean of the answers");
    return band ? QObject::tr("%1; band: middle half of the groups").arg(mean) : mean;
}

QString evaluationNote(const RlDemand& demand) {
    if (demand.evalEvery <= 0) {
        return QObject::tr("not evaluated");
    }
    return QObject::tr("%1 unseen problems, greedy, every %2 steps")
        .arg(countText(demand.evalProblems), countText(demand.evalEvery));
}

/// "A best 0.805 at step 220"
QString bestText(const RlCurves& curves, const QString& letter) {
    const RlEvaluation* best = curves.run->bestEvaluation();
    return best == nullptr ? QString()
                           : QObject::tr("%1best %2 at step %3")
                                 .arg(letter.isEmpty() ? letter : letter + QLatin1Char(' '), rewardText(best->reward),
                                      countText(best->step));
}

std::optional<std::pair<double, double>> joinedSpan(std::optional<std::pair<double, double>> one,
                                                    std::optional<std::pair<double, double>> other) {
    if (!one || !other) {
        return one ? one : other;
    }
    return std::pair(std::min(one->first, other->first), std::max(one->second, other->second));
}

} // namespace

RlLanes::RlLanes(TimeCursor* time, QWidget* parent) : QObject(parent), time_(time) {
    build(parent);
    connect(stack_, &LaneStack::hovered, this, &RlLanes::pointed);
}

void RlLanes::build(QWidget* parent) {
    stack_ = new LaneStack(time_, LaneStack::WithRuler, parent);
    stack_->ruler()->setCounted(kStepLength);
    stack_->ruler()->setLead(tr("Step"));
    reward_ = new SeriesLane(tr("Raw reward"), {}, time_, stack_);
    evaluation_ = new SeriesLane(tr("Evaluation reward"), {}, time_, stack_);
    difference_ = new SeriesLane(tr("Log-probability difference"), differenceNote(0), time_, stack_);
    lengths_ = new SeriesLane(tr("Response length, truncated"), {}, time_, stack_);
    phases_ = new BarLane(tr("Time of each phase"), tr("seconds a step"), time_, stack_);
    for (Lane* lane : std::initializer_list<Lane*>{reward_, evaluation_, difference_, lengths_, phases_}) {
        auto* facts = new PairFacts(lane);
        lane->addHeaderEnd(facts);
        facts_[lane] = facts;
        stack_->addLane(lane);
    }
    stack_->setKeptOpen(stack_->lanes().size()); // which ones are folded depends on the room: see setLow()
    setPlotHeights();
}

void RlLanes::setPlotHeights() {
    constexpr std::array kShares{kRewardShare, kEvaluationShare, kDifferenceShare, kLengthShare, kPhaseShare};
    for (std::size_t i = 0; i < kShares.size(); ++i) {
        stack_->lanes()[i]->setPlotHeight(low_ ? kLeastLowPlot : kLeastRlPlot, kShares[i]);
    }
}

void RlLanes::setLow(bool low) {
    if (low_ != low) {
        low_ = low;
        setPlotHeights();
        lengths_->setCollapsed(low);
        phases_->setCollapsed(low);
    }
}

void RlLanes::setRuns(RlShown shown) {
    const bool other = shown.runA != shown_.runA || shown.runB != shown_.runB ||
                       (shown.a != nullptr && shown_.a != nullptr && shown.a->axis != shown_.a->axis);
    if (other) {
        columns_.clear();
    }
    shown_ = std::move(shown);
    updateSeries();
}

void RlLanes::setBandShown(bool shown) {
    band_ = shown;
    updateReward();
}

void RlLanes::setSmooth(bool smooth) {
    smooth_ = smooth;
    updateReward();
    updateLengths();
}

void RlLanes::setReferenceShown(bool shown) {
    reference_ = shown;
    updateDifference();
}

std::function<std::vector<PlotSample>(const AxisMap&, int)> RlLanes::samplesOf(bool a, const QString& key,
                                                                               const PlotSeries& series) {
    std::shared_ptr<PlotColumns>& kept = columns_[(a ? QLatin1Char('A') : QLatin1Char('B')) + key];
    if (kept == nullptr) {
        kept = std::make_shared<PlotColumns>();
    }
    // The curves outlive their series.
    return [curves = a ? shown_.a : shown_.b, series = &series, kept](const AxisMap& axis, int columns) {
        return kept->samples(*series, axis, columns);
    };
}

LaneSeries RlLanes::lineOf(bool a, const QString& name, Member member) {
    const RlCurvesPtr curves = a ? shown_.a : shown_.b;
    LaneSeries out;
    out.name = name;
    out.samples = samplesOf(a, name, (*curves).*member);
    out.color = a ? colorOfA : colorOfB;
    out.mark = a ? LaneSeries::Mark::Thin : LaneSeries::Mark::Dashed;
    out.letter = QLatin1Char(a ? 'A' : 'B');
    out.at = [curves, member](base::TimeNs place) -> std::optional<double> {
        const RlRun& run = *curves->run;
        const auto index = run.stepAt(place, curves->axis);
        const base::TimeNs slack = curves->axis == RlAxis::Steps ? kStepLength / 2 : 0;
        if (!index || place > run.end(curves->axis) + slack || place + slack < run.place(0, curves->axis)) {
            return std::nullopt;
        }
        return ((*curves).*member).value(*index);
    };
    return out;
}

/// The raw line, or a mean line over it, which is pale then.
void RlLanes::addLine(std::vector<LaneSeries>& series, bool a, const QString& name, Member member, Member mean) {
    constexpr double kPale = 0.35;
    LaneSeries raw = lineOf(a, name, member);
    if (!smooth_) {
        series.push_back(std::move(raw));
        return;
    }
    raw.color = [of = raw.color](const ThemeTokens& t) { return withAlpha(of(t), kPale); };
    raw.letter = {};
    raw.at = nullptr;
    series.push_back(std::move(raw));
    series.push_back(lineOf(a, name + tr(", mean of 9"), mean));
}

std::optional<std::pair<double, double>> RlLanes::spanOf(Member member) const {
    std::optional<std::pair<double, double>> out;
    for (const RlCurvesPtr& curves : {shown_.a, shown_.b}) {
        if (curves != nullptr) {
            const PlotSeries& series = (*curves).*member;
            out = joinedSpan(out, series.usualSpan({0, curves->run->end(curves->axis) + 1}));
        }
    }
    return out;
}

void RlLanes::updateSeries() {
    const bool times = lead() != nullptr && lead()->axis != RlAxis::Steps;
    const RlAxis axis = times ? lead()->axis : RlAxis::Steps;
    stack_->ruler()->setLead(axis == RlAxis::Steps ? tr("Step") : axis == RlAxis::Time ? tr("Time") : tr("Tokens"));
    stack_->ruler()->setCounted(axis == RlAxis::Steps ? kStepLength : axis == RlAxis::Tokens ? kSampledTokenLength : 0);
    updateReward();
    updateDifference();
    updateLengths();
    updatePhases();
}

/// Rewards are drawn from 0 to 1 where they lie in it, so that the scale stays while a run goes on.
void RlLanes::updateReward() {
    if (lead() == nullptr) {
        return;
    }
    const auto scaleOf = [](const std::optional<std::pair<double, double>>& span) {
        return plotScale(span ? std::min(0.0, span->first) : 0, span ? std::max(1.0, span->second) : 1, 2);
    };
    const bool band = band_ && shown_.a != nullptr && shown_.a->rewardLow.span().has_value();
    std::vector<LaneSeries> rewards;
    if (band) {
        LaneSeries middle;
        middle.name = tr("middle half");
        middle.mark = LaneSeries::Mark::Band;
        middle.color = colorOfA;
        middle.samples = [low = samplesOf(true, QStringLiteral("low"), shown_.a->rewardLow),
                          high = samplesOf(true, QStringLiteral("high"), shown_.a->rewardHigh)](const AxisMap& axis,
                                                                                                int columns) {
            return bandOf(low(axis, columns), high(axis, columns));
        };
        rewards.push_back(std::move(middle));
    }
    SeriesPlot evaluations;
    QStringList best;
    for (const bool a : {false, true}) { // A lies over B
        const RlCurvesPtr& curves = a ? shown_.a : shown_.b;
        if (curves == nullptr) {
            continue;
        }
        addLine(rewards, a, tr("raw reward"), &RlCurves::reward, &RlCurves::rewardMean);
        LaneSeries dots = lineOf(a, tr("evaluation reward"), &RlCurves::evaluation);
        dots.mark = a ? LaneSeries::Mark::Dot : LaneSeries::Mark::Square;
        dots.at = [curves](base::TimeNs place) -> std::optional<double> {
            const auto index = curves->run->stepAt(place, curves->axis);
            const RlEvaluation* found = index ? curves->run->evaluationAt(curves->run->number(*index)) : nullptr;
            return found != nullptr && found->step == curves->run->number(*index) ? std::optional(found->reward)
                                                                                  : std::nullopt;
        };
        evaluations.series.push_back(std::move(dots));
        if (const QString words =
                bestText(*curves, shown_.b != nullptr ? QString(QLatin1Char(a ? 'A' : 'B')) : QString());
            !words.isEmpty()) {
            best.prepend(words);
        }
    }
    evaluations.scale = scaleOf(spanOf(&RlCurves::evaluation));
    reward_->setNote(rewardNote(lead()->run->demand(), band));
    reward_->setSeries(std::move(rewards), scaleOf(spanOf(&RlCurves::reward)));
    evaluation_->setNote((QStringList{evaluationNote(lead()->run->demand())} + best).join(QStringLiteral("; ")));
    evaluation_->setPlots({std::move(evaluations)});
}

/// What the dotted line is, which has no place in the plot where words would not cover lines.
QString RlLanes::differenceNote(double reference) const {
    if (reference <= 0) {
        return tr("mean |trainer − rollout| of sampled tokens, log scale");
    }
    const QString out =
        tr("mean |trainer − rollout|, log scale; dotted: %1 %2").arg(shown_.referenceName, differenceText(reference));
    const RlRun* run = shown_.a != nullptr && !shown_.a->run->empty() ? shown_.a->run.get() : nullptr;
    const double last = run != nullptr ? run->step(run->size() - 1).absDifference : 0;
    return last > 0 ? out + tr(", A %1 times that").arg(last / reference, 0, 'f', 2) : out;
}

void RlLanes::updateDifference() {
    if (lead() == nullptr) {
        return;
    }
    const double reference = reference_ ? shown_.reference.value_or(0) : 0; // 0: none
    std::vector<LaneSeries> lines;
    for (const bool a : {false, true}) {
        if ((a ? shown_.a : shown_.b) == nullptr) {
            continue;
        }
        lines.push_back(lineOf(a, tr("difference"), &RlCurves::difference));
    }
    difference_->setNote(differenceNote(reference));
    auto span = spanOf(&RlCurves::difference);
    const double level = reference > 0 ? std::log10(reference) : 0;
    if (reference > 0) {
        span = joinedSpan(span, std::pair(level, level));
    }
    difference_->setSeries(std::move(lines), span ? decadeScale(span->first, span->second, 3) : decadeScale(-3, -1, 3));
    if (reference > 0) {
        difference_->setLimit(level, {}, true);
    } else {
        difference_->setLimit(std::nullopt);
    }
}

void RlLanes::updateLengths() {
    if (lead() == nullptr) {
        return;
    }
    SeriesPlot tokens, cut;
    for (const bool a : {false, true}) {
        if ((a ? shown_.a : shown_.b) != nullptr) {
            addLine(tokens.series, a, tr("mean tokens"), &RlCurves::tokens, &RlCurves::tokensMean);
            addLine(cut.series, a, tr("cut off"), &RlCurves::cut, &RlCurves::cutMean);
        }
    }
    const auto most = [this](Member member, double least) {
        const auto span = spanOf(member);
        return span ? std::max(span->second, least) : least;
    };
    const std::int64_t longest = lead()->run->demand().longest;
    tokens.scale = plotScale(0, most(&RlCurves::tokens, 1), 2);
    lengths_->setNote(longest > 0 ? tr("mean tokens; below: cut off at %1 tokens, %").arg(countText(longest))
                                  : tr("mean tokens; below: cut off, %"));
    cut.scale = plotScale(0, most(&RlCurves::cut, 0.01), 1);
    cut.scale.unit = 0.01;
    lengths_->setPlots({std::move(tokens), std::move(cut)});
}

void RlLanes::updatePhases() {
    if (lead() == nullptr) {
        return;
    }
    std::vector<BarPart> parts;
    const auto most = spanOf(&RlCurves::seconds);
    for (int i = 0; i < kRlTimeParts && shown_.a != nullptr; ++i) {
        const auto part = static_cast<RlTimePart>(i);
        const PlotSeries& series = shown_.a->parts[static_cast<std::size_t>(i)];
        if (const auto span = series.span(); span && most && span->second > kDrawnPart * most->second) {
            parts.push_back(
                {timePartName(part), {}, timePartCategory(part), samplesOf(true, timePartName(part), series)});
        }
    }
    std::optional<LaneSeries> line;
    if (shown_.b != nullptr) {
        line = lineOf(false, tr("seconds of B"), &RlCurves::seconds);
    }
    phases_->setBars(std::move(parts), plotScale(0, most ? std::max(most->second, 1e-6) : 1, 2), std::move(line));
}

} // namespace vitrine::ui
