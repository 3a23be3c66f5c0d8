// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What plans said of runs that were then measured, and how far a new plan may be off.

#include <QString>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/workload/experiment/experiment.h"
#include "sessions/run_info.h"

namespace vitrine::ui {

/// A run whose memory was measured.
struct PastRun {
    sessions::RunId run = 0;
    QString name, model, device; ///< the device's profile; empty: none describes it
    std::string experiment;
    std::uint64_t measured = 0;  ///< bytes at the peak
    std::uint64_t predicted = 0; ///< 0: not known

    /// Measured minus predicted, as a part of predicted.
    double error() const {
        return predicted > 0 ? static_cast<double>(measured) / static_cast<double>(predicted) - 1 : 0;
    }
};

/// The profile of the device that a run ran on, or was planned for; empty: none describes it.
QString runDevice(const sessions::RunInfo& run);

/// The plan on the device of this profile; an empty one changes nothing.
engine::Experiment planFor(engine::Experiment planned, const QString& device);

/// The finished runs of a session that were measured on a device, oldest first, with what plans said of them
/// where the run has kept it.
std::vector<PastRun> measuredRuns(const std::vector<sessions::RunInfo>& runs);
/// Which runs those may be; cheap.
std::vector<sessions::RunId> doneRuns(const std::vector<sessions::RunInfo>& runs);

/// Prices those of the runs that have no prediction; what cannot be priced any more is left out. Long: for a worker.
std::vector<PastRun> predictedRuns(std::vector<PastRun> runs);

struct ErrorBand {
    double share = 0.03; ///< of the predicted peak, on either side
    int runs = 0;        ///< that it comes from; 0: it is assumed
    bool own = false;    ///< they are of this model and device
};

/// The largest error of the runs of this model and device where there are three, else of all runs, else 3 %.
ErrorBand errorBand(const std::vector<PastRun>& runs, const QString& model, const QString& device);

} // namespace vitrine::ui
