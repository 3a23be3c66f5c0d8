// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Prices of whole experiments: what each would hold at its peak, where, and how long a step would take.

#include <cstdint>
#include <map>
#include <string>

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
    std::string place;             ///< of the peak, "backward layer 23"; empty: not known
    std::uint64_t host = 0;        ///< bytes of host memory
    double seconds = 0;            ///< of a step
    std::int64_t contextLimit = 0; ///< the model's own; 0: not known

    bool known() const { return error.empty() && reserved > 0; }
    /// Bytes by which the budget is larger than what is reserved; negative: what is missing.
    std::int64_t spare() const { return static_cast<std::int64_t>(budget) - static_cast<std::int64_t>(reserved); }
};

/// Prices experiments and remembers the prices. One thread at a time. What is priced must not change on the disk while
/// the pricer lives.
class PlanPricer {
public:
    /// The price as `vitrine plan` gives it. What cannot be planned has a price with an error. Throws Cancelled.
    const PlanPrice& price(const Experiment& experiment, const base::StopToken& stop);
    /// How many plans were made; a remembered price makes none.
    std::size_t plansMade() const { return prices_.size(); }

private:
    std::map<std::string, PlanPrice> prices_; ///< by the experiment's text
};

} // namespace vitrine::engine
