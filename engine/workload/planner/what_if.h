// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// All that the planner says about one experiment: sets of techniques beside each other, the longest context of each,
// what each switch saves, and what would make it fit.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/workload/planner/plan_changes.h"
#include "engine/workload/planner/plan_line.h"

namespace vitrine::engine {

struct WhatIfSet {
    PlanSetSpec spec;
    PlanPrice price; ///< at the context that was asked for
    PlanLine line;
    bool lineKnown = false;
};

struct WhatIfSwitch {
    PlanSwitchSpec spec;
    bool on = false;
    std::int64_t saves = 0; ///< reserved bytes without it minus those with it, all else equal
    bool priced = false;
};

/// A context that people ask for, with the chosen set.
struct WhatIfGoal {
    std::int64_t tokens = 1'000'000;
    PlanPrice price;                  ///< without an error and bytes: not known
    std::optional<PlanChange> device; ///< on which it fits; nothing where it fits already
};

struct WhatIf {
    std::int64_t context = 0;
    std::vector<WhatIfSet> sets;
    std::size_t chosen = 0; ///< of sets: the one that the experiment itself has
    std::vector<WhatIfSwitch> switches;
    /// The set that does not fit with the fewest bytes missing; changes are for it. Equal to sets.size(): all fit.
    std::size_t changed = 0;
    std::vector<PlanChange> changes;
    bool changesKnown = false;
    WhatIfGoal goal;
    bool sampled = false; ///< a step samples the answers that it trains on: reinforcement learning
    /// Where they are: the longest answer that fits with the chosen set, and the most that are sampled together; 0: not
    /// known yet.
    std::int64_t longestAnswer = 0, mostAnswers = 0;
    bool complete = false;
    std::size_t plans = 0; ///< made for this answer

    const WhatIfSet& set() const { return sets[chosen]; }
};

/// Prices one experiment after the other and hands over what is known after each part: first the sets, then switches,
/// longest contexts, changes. One thread asks; plans are made on two. Prices and lines are kept from question to
/// question, so that a slider that moves costs few plans.
class WhatIfPlanner {
public:
    /// Called on any thread, one call at a time.
    using Found = std::function<void(const WhatIf& soFar)>;

    /// `experiment` need not be a plan. Throws BadInput where it cannot be planned, and Cancelled.
    WhatIf answer(const Experiment& experiment, std::int64_t context, const base::StopToken& stop,
                  const Found& found = {});

private:
    const PlanLine& lineOf(const Experiment& planned, const base::StopToken& stop);
    void addSwitches(WhatIf& out, const Experiment& planned, const base::StopToken& stop);
    void addLines(WhatIf& out, const Experiment& planned, const base::StopToken& stop, const Found& found);
    WhatIfGoal goalOf(const WhatIf& answer, const Experiment& planned, const base::StopToken& stop);
    void addAnswerLimits(WhatIf& out, const Experiment& planned, const base::StopToken& stop);
    void addChanges(WhatIf& out, const Experiment& planned, const base::StopToken& stop, const Found& found);

    PlanPricer pricer_;
    std::mutex linesMutex_;
    std::map<std::string, PlanLine> lines_; ///< by the text of the experiment with a fixed context
};

} // namespace vitrine::engine
