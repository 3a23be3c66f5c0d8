// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Prices of whole experiments: what each would hold at its peak, where, and how long a step would take.

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "base/trace.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

struct PlanPrice {
    std::string error; ///< why there is no price; nothing else is set then
    bool fits = false;
    std::uint64_t peak = 0;     ///< bytes of tensors at the peak
    std::uint64_t reserved = 0; ///< most bytes taken of the device, with what lies free between tensors
    std::uint64_t budget = 0;   ///< that reserved bytes are held against
    base::CategoryBytes byCategory{};
    std::string place;      ///< of the peak, "backward layer 23"; empty: not known
    std::uint64_t host = 0; ///< bytes of host memory
    double seconds = 0;     ///< of a step
    /// Of reinforcement learning: peaks of both roles, and seconds of the phases of a step that take time.
    std::vector<std::pair<std::string, std::uint64_t>> roles;
    std::vector<std::pair<std::string, double>> phases;
    std::int64_t longestAnswer = 0, mostAnswers = 0; ///< where they were searched for; 0: none fits, or not searched
    std::string timesFrom;         ///< what the seconds are priced by: "data sheet", ... (result::kTimesFrom)
    std::int64_t contextLimit = 0; ///< the model's own; 0: not known

    bool known() const { return error.empty() && reserved > 0; }
    /// Bytes by which the budget is larger than what is reserved; negative: what is missing.
    std::int64_t spare() const { return static_cast<std::int64_t>(budget) - static_cast<std::int64_t>(reserved); }
};

/// Prices experiments and remembers the prices. Any thread may ask. What is priced must not change on the disk while
/// the pricer lives.
class PlanPricer {
public:
    /// The price as `vitrine plan` gives it. What cannot be planned has a price with an error. The price stays where it
    /// is. Throws Cancelled.
    const PlanPrice& price(const Experiment& experiment, const base::StopToken& stop);
    /// Prices all of these on several threads, so that price() knows them. Throws Cancelled.
    void priceAll(const std::vector<Experiment>& experiments, const base::StopToken& stop);
    /// How many plans were made; a remembered price makes none.
    std::size_t plansMade() const;

private:
    mutable std::mutex mutex_;
    std::map<std::string, PlanPrice> prices_; ///< by the experiment's text
};

/// Calls work(i) for each i below `count` on the calling thread and one more. Returns when all are done and throws the
/// first exception of any. A plan takes one thread from its beginning to its end, so two plans share two cores.
void forEachPlan(std::size_t count, const std::function<void(std::size_t)>& work);

} // namespace vitrine::engine
