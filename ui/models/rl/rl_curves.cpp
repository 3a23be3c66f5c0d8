// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/rl/rl_curves.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <limits>

namespace vitrine::ui {

QString timePartName(RlTimePart part) {
    switch (part) {
    case RlTimePart::Rollout:
        return QObject::tr("rollout");
    case RlTimePart::Judging:
        return QObject::tr("judging");
    case RlTimePart::LogProbs:
        return QObject::tr("log-probs");
    case RlTimePart::Train:
        return QObject::tr("train");
    case RlTimePart::Weights:
        break;
    }
    return QObject::tr("weight update");
}

base::MemoryCategory timePartCategory(RlTimePart part) {
    switch (part) {
    case RlTimePart::Rollout:
        return base::MemoryCategory::KvCache;
    case RlTimePart::Judging:
        return base::MemoryCategory::Other;
    case RlTimePart::LogProbs:
        return base::MemoryCategory::Logits;
    case RlTimePart::Train:
        return base::MemoryCategory::Gradients;
    case RlTimePart::Weights:
        break;
    }
    return base::MemoryCategory::Weights;
}

double timePartSeconds(const engine::RlStep& step, RlTimePart part) {
    switch (part) {
    case RlTimePart::Rollout:
        return step.rolloutSeconds;
    case RlTimePart::Judging:
        return step.judgingSeconds;
    case RlTimePart::LogProbs:
        return step.logProbSeconds;
    case RlTimePart::Train:
        return step.updateSeconds;
    case RlTimePart::Weights:
        break;
    }
    return step.weightSeconds;
}

namespace {

/// Each value is the mean of those that lie at most four steps away; where it is not known, the mean is not either.
PlotSeries smoothed(const PlotSeries& series) {
    constexpr std::size_t kAway = 4;
    PlotSeries out;
    out.reserve(series.size());
    for (std::size_t i = 0; i < series.size(); ++i) {
        double sum = 0, known = 0;
        for (std::size_t k = i - std::min(i, kAway); k < std::min(series.size(), i + kAway + 1); ++k) {
            sum += std::isfinite(series.value(k)) ? series.value(k) : 0;
            known += std::isfinite(series.value(k)) ? 1 : 0;
        }
        out.add(series.place(i), std::isfinite(series.value(i)) ? sum / known : series.value(i));
    }
    return out;
}

} // namespace

RlCurvesPtr RlCurves::make(const RlRunPtr& run, RlAxis axis) {
    auto out = std::make_shared<RlCurves>();
    out->run = run;
    out->axis = axis;
    for (PlotSeries* series :
         {&out->reward, &out->rewardLow, &out->rewardHigh, &out->difference, &out->tokens, &out->cut, &out->seconds}) {
        series->reserve(run->size());
    }
    for (std::size_t i = 0; i < run->size(); ++i) {
        const engine::RlStep& step = run->step(i);
        const base::TimeNs place = run->place(i, axis);
        out->reward.add(place, step.reward);
        out->rewardLow.add(place, step.rewardLow);
        out->rewardHigh.add(place, step.rewardHigh);
        // A run in which both roles compute alike has differences of nothing, which have no logarithm.
        out->difference.add(place, step.absDifference > 0 ? std::log10(step.absDifference)
                                                          : std::numeric_limits<double>::quiet_NaN());
        out->tokens.add(place, step.answerTokens);
        out->cut.add(place, step.cutShare);
        double sum = 0;
        for (int part = 0; part < kRlTimeParts; ++part) {
            const double seconds = timePartSeconds(step, static_cast<RlTimePart>(part));
            out->parts[static_cast<std::size_t>(part)].add(place, seconds);
            sum += std::isfinite(seconds) ? seconds : 0;
        }
        out->seconds.add(place, std::isfinite(step.seconds) ? step.seconds : sum);
    }
    out->rewardMean = smoothed(out->reward);
    out->tokensMean = smoothed(out->tokens);
    out->cutMean = smoothed(out->cut);
    for (const RlEvaluation& evaluation : run->evaluations()) {
        out->evaluation.add(run->placeOf(evaluation, axis), evaluation.reward);
    }
    return out;
}

std::vector<PlotSample> bandOf(std::vector<PlotSample> low, const std::vector<PlotSample>& high) {
    for (std::size_t i = 0; i < low.size(); ++i) {
        PlotSample& sample = low[i];
        sample.low = sample.value;
        sample.high = i < high.size() ? high[i].value : sample.value;
        sample.value = (sample.low + sample.high) / 2;
    }
    return low;
}

} // namespace vitrine::ui
