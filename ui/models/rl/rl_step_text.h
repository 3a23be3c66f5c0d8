// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Words and tables about steps of reinforcement learning, of run A and perhaps of a baseline. Pure functions; any
// thread.

#include <QString>
#include <cstddef>
#include <optional>
#include <vector>

#include "ui/models/common/flat_tree.h"
#include "ui/models/rl/rl_run.h"

namespace vitrine::ui {

/// A step of A and the one with the same number of B.
struct RlStepPair {
    RlRunPtr a, b;                ///< b null: there is no baseline
    std::optional<std::size_t> i; ///< index in A; nothing: A has no such step
    std::optional<std::size_t> j; ///< and in B

    static RlStepPair at(const RlRunPtr& a, const RlRunPtr& b, std::int64_t number);
    std::int64_t number() const { return i ? a->number(*i) : j ? b->number(*j) : 0; }
};

/// A number as lanes and the inspector write it: "0.758", "0.0030", "95", "0.8 %", "16.50 s". A dash for none.
QString rewardText(double value);
QString differenceText(double value); ///< "3.1e−6" where four decimals say too little
QString meanTokensText(double value);
QString partText(double share);     ///< of answers or tokens
QString stepTimeText(double value); ///< seconds

/// The step in which the run held the most memory; nothing where no step says it.
std::optional<std::size_t> rlHighestPeak(const RlRun& run);
/// The figures of a step: A, B and "A to B". Without a baseline, A alone.
FlatTreePtr rlFigureTable(const RlStepPair& pair);
/// The same with the means of the steps [first, last], of the numbers that are known.
FlatTreePtr rlMeanTable(const RlRunPtr& a, const RlRunPtr& b, std::int64_t first, std::int64_t last);
/// "Step 210: raw reward A 0.758, B 0.674; log-probability difference A 0.0030, B 0.0190, 6.3 times A"
QString rlReadout(const RlStepPair& pair);
/// At most `most` steps, evenly chosen, the last one among them: what "Show as table" gives.
FlatTreePtr rlStepTable(const RlRun& run, std::size_t most = 1000);
/// "128 groups of 8, limit 256 tokens"; "given answers".
QString rlDemandText(const RlDemand& demand);

} // namespace vitrine::ui
