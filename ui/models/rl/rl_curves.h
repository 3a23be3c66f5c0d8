// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The numbers of a run's steps as series on one axis, as lanes paint them. Values; any thread.

#include <array>
#include <memory>
#include <optional>

#include "ui/models/rl/rl_run.h"

namespace vitrine::ui {

/// Where the time of a step goes, in the order in which its parts are stacked.
enum class RlTimePart : std::uint8_t { Rollout, Judging, LogProbs, Train, Weights };
inline constexpr int kRlTimeParts = 5;
QString timePartName(RlTimePart part);
/// The category that it mostly writes, whose colour it has.
base::MemoryCategory timePartCategory(RlTimePart part);
/// Seconds of a step; NaN where they are not known.
double timePartSeconds(const engine::RlStep& step, RlTimePart part);

struct RlCurves {
    RlRunPtr run; ///< never null
    RlAxis axis = RlAxis::Steps;
    PlotSeries reward, rewardLow, rewardHigh;
    PlotSeries evaluation;
    PlotSeries difference; ///< decimal logarithm
    PlotSeries tokens, cut;
    PlotSeries rewardMean, tokensMean, cutMean; ///< of nine steps each
    PlotSeries seconds;                         ///< of all phases together
    std::array<PlotSeries, kRlTimeParts> parts;

    static std::shared_ptr<const RlCurves> make(const RlRunPtr& run, RlAxis axis);
};
using RlCurvesPtr = std::shared_ptr<const RlCurves>;

/// The band between samples of two series that have the same places: value in its middle, low and high at its edges.
std::vector<PlotSample> bandOf(std::vector<PlotSample> low, const std::vector<PlotSample>& high);

} // namespace vitrine::ui
