// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The losses of training runs on an axis that runs of different batches and speeds share: steps, tokens or time.
// Values; any thread.

#include <QString>
#include <cstdint>

#include "ui/models/common/plot_series.h"
#include "ui/models/finetune/training_run.h"

namespace vitrine::ui {

enum class LossAxis : std::uint8_t { Steps, Tokens, Time };

/// A token on the axis of tokens.
inline constexpr base::TimeNs kTokenLength = 1000;

struct LossCurve {
    PlotSeries raw, smoothed; ///< a value for each step, where it ends
    base::TimeNs end = 0;     ///< of the last step
};

/// Tokens and time count from the begin of the first step that the run has recorded.
LossCurve lossCurve(const TrainingRun& run, LossAxis axis);

/// "Step 40, smoothed loss: A 1.234, B 1.301, B − A +0.067"; each run's step that is nearest to the place. `b` may be
/// null. Empty where no run has a step.
QString lossReadout(const LossCurve& a, const LossCurve* b, LossAxis axis, base::TimeNs place);

} // namespace vitrine::ui
