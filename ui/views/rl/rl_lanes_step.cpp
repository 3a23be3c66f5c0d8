// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// One step in the lanes: which one is shown, its values in their headers, its tag on the ruler.
#include <algorithm>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/views/rl/rl_lanes.h"
#include "ui/widgets/timeline/bar_lane.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/pair_facts.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

std::optional<std::int64_t> RlLanes::stepAt(base::TimeNs place) const {
    // Of the run that reaches as far.
    for (const RlCurvesPtr& curves : {shown_.a, shown_.b}) {
        if (curves != nullptr && !curves->run->empty() && place <= curves->run->end(curves->axis) + kStepLength / 2) {
            return curves->run->number(*curves->run->stepAt(place, curves->axis));
        }
    }
    std::optional<std::int64_t> last;
    for (const RlCurvesPtr& curves : {shown_.a, shown_.b}) {
        if (curves != nullptr && !curves->run->empty()) {
            last = std::max(last.value_or(0), curves->run->lastStep());
        }
    }
    return last;
}

std::optional<std::int64_t> RlLanes::chosenStep() const {
    if (time_->cursor()) {
        return stepAt(*time_->cursor());
    }
    for (const RlCurvesPtr& curves : {shown_.a, shown_.b}) {
        if (curves != nullptr && !curves->run->empty()) {
            return curves->run->lastStep();
        }
    }
    return std::nullopt;
}

std::optional<std::int64_t> RlLanes::shownStep() const {
    for (const Lane* lane : stack_->lanes()) {
        if (lane->hovered()) {
            return stepAt(*lane->hovered());
        }
    }
    return chosenStep();
}

std::optional<std::pair<std::int64_t, std::int64_t>> RlLanes::measuredSteps() const {
    const std::optional<TimeRange> range = time_->measured();
    std::optional<std::pair<std::int64_t, std::int64_t>> out;
    for (const RlCurvesPtr& curves : {shown_.a, shown_.b}) {
        if (!range || curves == nullptr || curves->run->empty()) {
            continue;
        }
        const RlRun& run = *curves->run;
        std::size_t first = *run.stepAt(range->begin, curves->axis), last = *run.stepAt(range->end, curves->axis);
        first += run.place(first, curves->axis) < range->begin ? 1 : 0;
        if (last > 0 && run.place(last, curves->axis) > range->end) {
            --last;
        }
        if (first <= last && first < run.size() && run.place(first, curves->axis) <= range->end) {
            out = {std::min(out ? out->first : run.number(first), run.number(first)),
                   std::max(out ? out->second : run.number(last), run.number(last))};
        }
    }
    return out;
}

std::optional<base::TimeNs> RlLanes::placeOf(std::int64_t step) const {
    for (const RlCurvesPtr& curves : {shown_.a, shown_.b}) {
        if (const auto index = curves != nullptr ? curves->run->indexOf(step) : std::nullopt) {
            return curves->run->place(*index, curves->axis);
        }
    }
    return std::nullopt;
}

void RlLanes::showStep(const RlStepPair& pair) {
    const bool both = pair.b != nullptr;
    const auto fill = [&](const Lane* lane, const std::function<QString(const RlRun&, std::size_t)>& words) {
        facts_[lane]->setValues(pair.i ? words(*pair.a, *pair.i) : unknownText(),
                                pair.j ? words(*pair.b, *pair.j) : unknownText(), both);
    };
    using Step = engine::RlStep;
    const auto numberText = [](double Step::* member, QString (*words)(double)) {
        return [member, words](const RlRun& run, std::size_t index) { return words(run.step(index).*member); };
    };
    fill(reward_, numberText(&Step::reward, rewardText));
    fill(evaluation_, [](const RlRun& run, std::size_t index) {
        const RlEvaluation* found = run.evaluationAt(run.number(index));
        return found != nullptr ? rewardText(found->reward) : unknownText();
    });
    fill(difference_, numberText(&Step::absDifference, differenceText));
    fill(lengths_, [](const RlRun& run, std::size_t index) {
        return tr("%1 tokens, %2")
            .arg(meanTokensText(run.step(index).answerTokens), partText(run.step(index).cutShare));
    });
    fill(phases_, numberText(&Step::seconds, stepTimeText));
    QStringList values, small;
    for (int i = 0; i < kRlTimeParts && pair.i; ++i) {
        const auto part = static_cast<RlTimePart>(i);
        const double seconds = timePartSeconds(pair.a->step(*pair.i), part);
        const bool drawn =
            std::ranges::find(phases_->parts(), timePartName(part), &BarPart::name) != phases_->parts().end();
        if (drawn) {
            values << stepTimeText(seconds);
        } else if (seconds > 0) {
            small << timePartName(part) + QLatin1Char(' ') + stepTimeText(seconds);
        }
    }
    phases_->setValues(values,
                       pair.i ? tr("values of %1in step %2").arg(both ? tr("A ") : QString(), countText(pair.number()))
                              : QString(),
                       small.isEmpty() ? QString() : tr("%1, too short to draw").arg(small.join(QStringLiteral(", "))));
    updateRuler(pair);
}

void RlLanes::updateRuler(const RlStepPair& pair) {
    std::vector<TimeMark> tags;
    if (time_->cursor() && (pair.i || pair.j)) {
        if (const auto place = placeOf(pair.number())) {
            tags.push_back({*place, TimeMark::Kind::Cursor, countText(pair.number())});
        }
    }
    if (shown_.live && shown_.a != nullptr && !shown_.a->run->empty()) {
        tags.push_back({shown_.a->run->end(shown_.a->axis), TimeMark::Kind::Now,
                        tr("%1, running").arg(countText(shown_.a->run->lastStep()))});
    }
    std::vector<base::TimeNs> rules;
    if (!tags.empty() && tags.back().kind == TimeMark::Kind::Now) {
        rules.push_back(tags.back().time);
    }
    for (SeriesLane* lane : {reward_, evaluation_, difference_, lengths_}) {
        lane->setRules(rules);
    }
    stack_->ruler()->setMarks(std::move(tags));
}

QString RlLanes::factsOf(const Lane* lane) const {
    const auto found = facts_.find(lane);
    return found == facts_.end() ? QString() : found->second->text();
}

} // namespace vitrine::ui
