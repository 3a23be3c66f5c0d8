// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What would make an experiment fit: every option that holds memory, alone and two together, each really priced.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/workload/planner/plan_price.h"
#include "engine/workload/planner/plan_sets.h"

namespace vitrine::engine {

struct PlanChange {
    std::vector<OptionEdit> edits;
    PlanPrice price;
    /// It takes some of the work away (shorter, fewer), where others only do the same work otherwise.
    bool lessWork = false;
    bool otherDevice = false;

    /// It divides the model among more devices of the same kind. Also counted as `otherDevice`.
    bool moreDevices() const { return edits.front().key == "tp"; }
};

/// The changes of one option that may lower the peak, smaller numbers as they are first tried.
std::vector<PlanChange> possibleChanges(const Experiment& planned);

/// Those that lower the peak and do not fit alone, two by two; the ones that lower it most are paired. The changes are
/// priced, the pairs are not.
std::vector<PlanChange> pairsOfChanges(std::vector<PlanChange> changes);

/// The smallest shipped device with more than `budget` bytes of memory on which the experiment fits. Throws Cancelled.
std::optional<PlanChange> deviceThatFits(PlanPricer& pricer, const Experiment& planned, std::uint64_t budget,
                                         const base::StopToken& stop);

/// The fewest devices of the same kind that hold the experiment together: a power of two times as many as now. Throws
/// Cancelled.
std::optional<PlanChange> ranksThatFit(PlanPricer& pricer, const Experiment& planned, const base::StopToken& stop);

/// What fits first: changes that keep the work by their step time, then those that do less, then another device. After
/// them what lowers the peak and is not enough, by what is missing. `longest` tokens are known to fit and are offered
/// too; 0: none. `found` is called with the list so far. Throws Cancelled.
std::vector<PlanChange> fittingChanges(PlanPricer& pricer, const Experiment& planned, std::int64_t longest,
                                       const base::StopToken& stop,
                                       const std::function<void(const std::vector<PlanChange>&)>& found = {});

} // namespace vitrine::engine
