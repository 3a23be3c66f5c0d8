// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What earlier plans said of runs that were then measured, as dots: a run's error over its predicted peak. Free
// functions of the Planner view.

#include <QString>
#include <cstddef>
#include <vector>

#include "ui/models/planner/past_plans.h"

namespace vitrine::ui {

class Chart;

/// Which of the runs each dot stands for, by series of the plot: other runs, those of this model and device.
using PastDots = std::vector<std::vector<std::size_t>>;

/// Shows the runs in `plot`; those of this model and device have a series of their own. Without runs the plot says so.
PastDots showPastRuns(Chart& plot, const std::vector<PastRun>& runs, const QString& model, const QString& device);

/// "1 run"; without any, that there are none.
QString pastRunsText(std::size_t runs);

/// The run of a dot; null: there is no such dot.
const PastRun* pastRunAt(const std::vector<PastRun>& runs, const PastDots& dots, int series, int point);

/// Its name, what was predicted and what was measured; empty for none.
QString pastRunText(const PastRun* run);

} // namespace vitrine::ui
