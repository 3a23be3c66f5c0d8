// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the memory techniques of a training run buy and cost, by the planner: each switch alone, the longest context of
// each set of them, and what the planner says of the run itself. Takes some plans, so it runs on a worker thread.

#include <QString>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "sessions/run_info.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/finetune/training_run.h"
#include "ui/models/planner/past_plans.h"

namespace vitrine::ui {

/// A technique that can be turned on or off, and the planned peak and step time if it were the other way.
struct SwitchPrice {
    QString name, setting;
    std::string key, other; ///< the option, and its value if it were the other way
    bool on = false;
    bool known = false; ///< it has a price
    std::uint64_t otherPeak = 0;
    double otherSeconds = 0;
    bool otherFits = false;
};

/// A set of techniques and the longest row that fits with it.
struct ContextLimit {
    QString name;
    std::int64_t longest = 0;
    bool chosen = false; ///< what this run has
};

/// Two runs of the session that differ in switches, both measured.
struct MeasuredPair {
    QString name;                        ///< "Offload and tiled MLP"
    std::int64_t step = 0;               ///< the first one with the other switches
    std::uint64_t before = 0, after = 0; ///< bytes at the peak
    double beforeSeconds = 0, afterSeconds = 0;
};

struct SwitchPrices {
    std::uint64_t peak = 0; ///< planned, of the run as it is
    double seconds = 0;     ///< of a step
    std::uint64_t budget = 0;
    std::int64_t context = 0;
    std::uint64_t host = 0; ///< host memory of the largest set
    ErrorBand band;
    std::vector<SwitchPrice> switches;
    std::vector<ContextLimit> limits;
};

/// Nothing where the run cannot be planned. `tokens` are those of a step, where the experiment does not say its rows;
/// `past` are the measured runs that the error comes from.
std::optional<SwitchPrices> switchPrices(const sessions::RunInfo& run, std::int64_t tokens,
                                         const std::vector<PastRun>& past);

/// "Chunked loss, offload": the switches that are on; empty: none is, or the run is no training.
QString switchesText(const std::string& specJson);
/// The same run goes on in `run` with other switches; nothing where it does not, or where one was not measured.
std::optional<MeasuredPair> measuredPair(const std::vector<sessions::RunInfo>& runs, const sessions::RunInfo& run,
                                         const TrainingRun& training, std::uint64_t peak);

/// Rows of two lines each: name and setting, bytes at the peak, time. A cell has both lines; the share of the first is
/// 1 for a switch that is on, 0 for one that is off; rows that were measured have none.
FlatTreePtr switchTable(const SwitchPrices& prices, const std::optional<MeasuredPair>& measured);

/// A switch that does not pay, or one that would let a longer context fit.
struct SwitchHint {
    QString title, text, button;
    std::size_t row = 0; ///< of SwitchPrices::switches
};
std::optional<SwitchHint> switchHint(const SwitchPrices& prices, const TrainingRun& training, std::int64_t checkpoint);

/// "plan, ±2.1 %"
QString planBandText(const ErrorBand& band);

} // namespace vitrine::ui
