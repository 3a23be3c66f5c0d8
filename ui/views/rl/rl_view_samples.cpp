// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The answers of the chosen step in the view: those of A, and of B to the same prompts.
#include <algorithm>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/views/rl/rl_lanes.h"
#include "ui/views/rl/rl_panel.h"
#include "ui/views/rl/rl_samples_page.h"
#include "ui/views/rl/rl_view.h"

namespace vitrine::ui {

namespace {

bool hasGroups(const RlSamplesPtr& samples) {
    return samples != nullptr && !samples->groups.empty();
}

bool hasTokens(const RlSamplesPtr& samples) {
    return samples != nullptr && samples->hasTokens();
}

} // namespace

void RlView::updateSamples() {
    const SampledFrom now{timeline_, timelineB_, runs_, lanes_->chosenStep().value_or(-1)};
    if (now == sampledFrom_) {
        return;
    }
    // The answers of a step that has ended do not change while the run goes on.
    const bool sameStep = now.step == sampledFrom_.step;
    const auto known = [&](const RlSamplesPtr& samples, bool sameRun) {
        return sameStep && sameRun && hasTokens(samples) ? samples : nullptr;
    };
    Sampled kept{now.a != nullptr ? known(samplesA_, now.runs.a == sampledFrom_.runs.a) : nullptr,
                 now.b != nullptr ? known(samplesB_, now.runs.b == sampledFrom_.runs.b) : nullptr, nearestKept_};
    sampledFrom_ = now;
    if (now.step < 0 || (now.a == nullptr && now.b == nullptr)) {
        sampling_.cancel();
        takeSamples({});
        return;
    }
    if ((kept.a != nullptr || now.a == nullptr) && (kept.b != nullptr || now.b == nullptr)) {
        takeSamples(std::move(kept));
        return;
    }
    sampling_.start(
        [now, kept] {
            Sampled out = kept;
            if (out.a == nullptr && now.a != nullptr) {
                out.a = RlSamples::make(*now.a, now.step);
            }
            if (out.b == nullptr && now.b != nullptr) {
                out.b = RlSamples::make(*now.b, now.step);
            }
            const TimelinePtr& lead = now.a != nullptr ? now.a : now.b;
            out.nearest = hasTokens(out.a) || hasTokens(out.b) ? std::nullopt : RlSamples::nearestKept(*lead, now.step);
            return out;
        },
        [this](Sampled sampled) { takeSamples(std::move(sampled)); });
}

const RlSamplesPtr& RlView::samples() const {
    return hasGroups(samplesA_) || !hasGroups(samplesB_) ? samplesA_ : samplesB_;
}

void RlView::takeSamples(Sampled sampled) {
    samplesA_ = std::move(sampled.a);
    samplesB_ = std::move(sampled.b);
    nearestKept_ = sampled.nearest;
    const bool any = hasGroups(samples());
    if (any && (group_ >= samples()->groups.size() || !samples()->groups[group_].hasTexts())) {
        group_ = groupToRead();
    }
    samplesPage_->setSamples(any ? samples() : nullptr, whyNoSamples(false));
    showGroup();
}

/// A group that has something to read, of both runs if there is one.
std::size_t RlView::groupToRead() const {
    const std::vector<RlSampleGroup>& groups = samples()->groups;
    const auto inBoth = [&](const RlSampleGroup& group) {
        const auto other = group.hasTexts() && hasGroups(samplesB_) ? samplesB_->sameQuestion(group) : std::nullopt;
        return other && samplesB_->groups[*other].hasTexts();
    };
    auto found = std::ranges::find_if(groups, inBoth);
    found = found != groups.end() ? found : std::ranges::find_if(groups, &RlSampleGroup::hasTexts);
    return found == groups.end() ? 0 : static_cast<std::size_t>(found - groups.begin());
}

QString RlView::whyNoSamples(bool ofB) const {
    const RlCurvesPtr& curves = ofB ? b_ : a_;
    if (curves == nullptr || (!ofB && curves->run->empty())) {
        return {};
    }
    const QString step = countText(sampledFrom_.step);
    if (!curves->run->indexOf(sampledFrom_.step)) {
        return tr("%1 has no step %2.").arg(QLatin1Char(ofB ? 'B' : 'A')).arg(step);
    }
    return ofB                    ? tr("B kept no samples of step %1.").arg(step)
           : hasGroups(samplesB_) ? tr("A kept no samples of step %1.").arg(step)
                                  : tr("The answers of step %1 were not kept.").arg(step);
}

/// The chosen group with the one of the other run that answers the same prompt.
RlGroupPair RlView::shownGroups() const {
    RlGroupPair out;
    if (hasGroups(samplesA_)) {
        out.a = samplesA_;
        out.groupA = group_;
        const auto same = hasGroups(samplesB_) ? samplesB_->sameQuestion(samplesA_->groups[group_]) : std::nullopt;
        out.b = same ? samplesB_ : nullptr;
        out.groupB = same.value_or(0);
        out.whyNoB = same                   ? QString()
                     : hasGroups(samplesB_) ? tr("B was not asked this in step %1.").arg(countText(sampledFrom_.step))
                                            : whyNoSamples(true);
    } else if (hasGroups(samplesB_)) {
        out.b = samplesB_;
        out.groupB = group_;
        out.whyNoA = whyNoSamples(false);
    }
    return out;
}

void RlView::showGroup() {
    std::size_t place = 0;
    const bool any = hasGroups(samples());
    if (any) {
        const std::vector<std::size_t> order = samples()->ordered(samplesPage_->order());
        place = static_cast<std::size_t>(std::ranges::find(order, group_) - order.begin());
        samplesPage_->setGroup(group_, shownGroups());
    }
    panel_->setSamples(any ? shownGroups() : RlGroupPair(), place, any ? samples()->groups.size() : 0,
                       whyNoSamples(false));
    panel_->setOtherStep(nearestKept_);
}

void RlView::groupBy(int direction) {
    if (!hasGroups(samples())) {
        return;
    }
    const std::vector<std::size_t> order = samples()->ordered(samplesPage_->order());
    const auto at = std::ranges::find(order, group_) - order.begin() + direction;
    if (at >= 0 && at < static_cast<std::ptrdiff_t>(order.size())) {
        group_ = order[static_cast<std::size_t>(at)];
        showGroup();
    }
}

} // namespace vitrine::ui
