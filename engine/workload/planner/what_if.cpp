// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/planner/what_if.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {

namespace {

/// The sets of the workload, and the experiment itself where it is none of them.
std::vector<WhatIfSet> setsOf(const Experiment& planned, std::size_t& chosen) {
    std::vector<WhatIfSet> out;
    for (PlanSetSpec& spec : planSets(planned)) {
        out.push_back({std::move(spec), {}, {}, false});
    }
    const std::vector<PlanSwitchSpec> switches = planSwitches(planned);
    chosen = out.size();
    for (std::size_t i = 0; i < out.size(); ++i) {
        const Experiment other = edited(planned, out[i].spec.edits);
        // "auto" is what the set with that technique does.
        const bool same = std::ranges::all_of(
            switches, [&](const PlanSwitchSpec& one) { return isOn(planned, one) == isOn(other, one); });
        const bool sameCache = !takesOption(planned, "kv_dtype") ||
                               planned.text("kv_dtype") == other.text("kv_dtype") ||
                               (i == 0 && planned.text("kv_dtype").empty());
        // Where it is not chosen, the run itself decides what its layers keep.
        const std::string kept = takesOption(planned, "checkpoint") ? planned.text("checkpoint") : "layer";
        const bool sameKept = kept != "none" && !kept.empty();
        if (same && sameCache && sameKept) {
            chosen = i;
        }
    }
    if (chosen == out.size()) {
        out.push_back({{"as chosen", {}}, {}, {}, false});
    }
    return out;
}

} // namespace

const PlanLine& WhatIfPlanner::lineOf(const Experiment& planned, const base::StopToken& stop) {
    const std::string key = withContext(planned, kContextUnit).jsonText();
    {
        const std::lock_guard lock(linesMutex_);
        if (const auto known = lines_.find(key); known != lines_.end()) {
            return known->second;
        }
    }
    PlanLine line = planLine(pricer_, planned, stop);
    const std::lock_guard lock(linesMutex_);
    return lines_.try_emplace(key, std::move(line)).first->second;
}

void WhatIfPlanner::addSwitches(WhatIf& out, const Experiment& planned, const base::StopToken& stop) {
    std::vector<Experiment> needed;
    for (const WhatIfSwitch& one : out.switches) {
        needed.push_back(edited(planned, {one.spec.on}));
        needed.push_back(edited(planned, {one.spec.off}));
    }
    pricer_.priceAll(needed, stop);
    for (WhatIfSwitch& one : out.switches) {
        const PlanPrice on = pricer_.price(edited(planned, {one.spec.on}), stop);
        const PlanPrice off = pricer_.price(edited(planned, {one.spec.off}), stop);
        one.priced = on.known() && off.known();
        if (one.priced) {
            one.saves = static_cast<std::int64_t>(off.reserved) - static_cast<std::int64_t>(on.reserved);
        }
    }
}

/// Also the goal, whose plans no line needs.
void WhatIfPlanner::addLines(WhatIf& out, const Experiment& planned, const base::StopToken& stop, const Found& found) {
    std::vector<std::size_t> order{out.chosen}; // whose limit is part of the verdict
    for (std::size_t i = out.sets.size(); i-- > 0;) {
        if (i != out.chosen) {
            order.push_back(i);
        }
    }
    std::mutex mutex; // of `out` and of `found`
    forEachPlan(order.size() + 1, [&](std::size_t which) {
        if (which == order.size()) {
            WhatIfGoal goal = goalOf(out, planned, stop);
            const std::lock_guard lock(mutex);
            out.goal = std::move(goal);
            return;
        }
        const std::size_t i = order[which];
        const Experiment experiment = edited(planned, out.sets[i].spec.edits);
        PlanLine line = lineOf(experiment, stop);
        addPoint(line, pricer_, experiment, out.context, stop);
        const std::lock_guard lock(mutex);
        out.sets[i].line = std::move(line);
        out.sets[i].lineKnown = true;
        if (found) {
            found(out);
        }
    });
}

void WhatIfPlanner::addChanges(WhatIf& out, const Experiment& planned, const base::StopToken& stop,
                               const Found& found) {
    const auto doesNotFit = [&](std::size_t i) {
        return i < out.sets.size() && out.sets[i].price.known() && !out.sets[i].price.fits;
    };
    out.changed = out.sets.size();
    if (doesNotFit(out.chosen)) {
        out.changed = out.chosen;
    } else {
        for (std::size_t i = 0; i < out.sets.size(); ++i) {
            if (doesNotFit(i) &&
                (out.changed == out.sets.size() || out.sets[i].price.spare() > out.sets[out.changed].price.spare())) {
                out.changed = i;
            }
        }
    }
    if (out.changed < out.sets.size()) {
        const WhatIfSet& set = out.sets[out.changed];
        out.changes = fittingChanges(pricer_, edited(planned, set.spec.edits), set.line.longest, stop,
                                     [&](const std::vector<PlanChange>& changes) {
                                         out.changes = changes;
                                         if (found) {
                                             found(out);
                                         }
                                     });
    }
    out.changesKnown = true;
}

void WhatIfPlanner::addAnswerLimits(WhatIf& out, const Experiment& planned, const base::StopToken& stop) {
    if (!out.sampled || !out.set().price.fits) {
        return;
    }
    const PlanPrice& price = pricer_.price(
        edited(edited(planned, out.set().spec.edits), {{"max_context", true}, {"max_batch", true}}), stop);
    out.longestAnswer = price.longestAnswer;
    out.mostAnswers = price.mostAnswers;
}

WhatIfGoal WhatIfPlanner::goalOf(const WhatIf& answer, const Experiment& planned, const base::StopToken& stop) {
    const WhatIfSet& set = answer.set();
    WhatIfGoal goal;
    if (answer.sampled) {
        return goal; // nobody asks problems of that length
    }
    if (set.price.contextLimit > 0 && set.price.contextLimit < goal.tokens) {
        return goal; // the model itself ends before
    }
    const Experiment there = withContext(edited(planned, set.spec.edits), goal.tokens);
    goal.price = pricer_.price(there, stop);
    if (goal.price.known() && !goal.price.fits) {
        goal.device = deviceThatFits(pricer_, there, goal.price.budget, stop);
    }
    return goal;
}

WhatIf WhatIfPlanner::answer(const Experiment& experiment, std::int64_t context, const base::StopToken& stop,
                             const Found& found) {
    const Experiment planned = plannedExperiment(experiment, context);
    const std::size_t before = pricer_.plansMade();
    WhatIf out;
    out.context = context;
    out.sampled = takesOption(planned, "samples");
    out.sets = setsOf(planned, out.chosen);
    out.changed = out.sets.size();
    std::vector<Experiment> needed;
    needed.reserve(out.sets.size());
    for (const WhatIfSet& set : out.sets) {
        needed.push_back(edited(planned, set.spec.edits));
    }
    pricer_.priceAll(needed, stop);
    for (std::size_t i = 0; i < needed.size(); ++i) {
        out.sets[i].price = pricer_.price(needed[i], stop);
    }
    for (PlanSwitchSpec& spec : planSwitches(planned)) {
        const bool on = isOn(planned, spec);
        out.switches.push_back({std::move(spec), on, 0, false});
    }
    if (!out.set().price.error.empty()) {
        throw base::BadInput(out.set().price.error);
    }
    if (found) {
        found(out);
    }
    addSwitches(out, planned, stop);
    if (found) {
        found(out);
    }
    addLines(out, planned, stop, found);
    addChanges(out, planned, stop, found);
    addAnswerLimits(out, planned, stop);
    out.plans = pricer_.plansMade() - before;
    out.complete = true;
    return out;
}

} // namespace vitrine::engine
