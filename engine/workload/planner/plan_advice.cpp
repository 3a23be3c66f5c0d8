// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/planner/plan_advice.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/planner/plan_line.h"

namespace vitrine::engine {

namespace {

/// "--kv-dtype int8 --prefill-chunk 2048"
std::string commandOptions(const PlanChange& change, const Experiment& changed) {
    std::string out;
    for (const OptionEdit& edit : change.edits) {
        std::string name = edit.key;
        std::ranges::replace(name, '_', '-');
        out += fmt::format("{}--{} {}", out.empty() ? "" : " ", name, changed.valueText(edit.key));
    }
    return out;
}

std::string kindOf(const PlanChange& change) {
    if (change.moreDevices()) {
        return "more devices";
    }
    return change.otherDevice ? "another device" : change.lessWork ? "less work" : "the same work";
}

} // namespace

PlanAdvice planAdvice(const Experiment& planned, std::size_t most, const base::StopToken& stop) {
    PlanPricer pricer;
    PlanAdvice out;
    out.before = pricer.price(planned, stop);
    const std::int64_t longest = contextOf(planned) ? planLine(pricer, planned, stop).longest : 0;
    out.changes = fittingChanges(pricer, planned, longest, stop);
    std::erase_if(out.changes, [](const PlanChange& change) { return !change.price.fits; });
    out.changes.resize(std::min(out.changes.size(), most));
    return out;
}

nlohmann::json planAdviceJson(const PlanAdvice& advice, const Experiment& planned) {
    nlohmann::json rows = nlohmann::json::array();
    for (const PlanChange& change : advice.changes) {
        const nlohmann::json spec = edited(planned, change.edits).toJson();
        nlohmann::json options = nlohmann::json::object();
        for (const OptionEdit& edit : change.edits) {
            options[edit.key] = spec.at(edit.key);
        }
        rows.push_back({{"options", std::move(options)},
                        {"reserved_bytes", change.price.reserved},
                        {"step_seconds", change.price.seconds},
                        {"less_work", change.lessWork},
                        {"other_device", change.otherDevice}});
    }
    return rows;
}

std::string planAdviceText(const PlanAdvice& advice, const Experiment& planned) {
    if (advice.changes.empty()) {
        return "Does not fit, and neither does any change of one or two options, nor another device of the list.\n";
    }
    std::vector<std::vector<std::string>> rows{{"would fit with", "reserved", "step", "does"}};
    for (const PlanChange& change : advice.changes) {
        const double before = advice.before.seconds, after = change.price.seconds;
        rows.push_back({commandOptions(change, edited(planned, change.edits)), base::formatBytes(change.price.reserved),
                        before > 0 && after > 0 ? fmt::format("{:.2f} times", after / before) : "", kindOf(change)});
    }
    return tableText(rows);
}

} // namespace vitrine::engine
