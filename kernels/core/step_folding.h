// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Folding of steps: a step that does what an earlier one did is recorded as a replay of that one's template.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/trace.h"

namespace vitrine::kernels {

/// Splits a finished step into what its template holds (with relative ids and times) and what is written each time:
/// what outlives it, and spans, whose times are their own.
struct StepSplit {
    base::StepTemplate step;
    std::vector<base::TraceEvent> outliving;
    std::uint64_t signature = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> ids; ///< of the step as it ran, to relative ones
    std::vector<base::StepScope> scopes;                  ///< reported as they ran
};

/// `events` are those of the step whose scope is `root`, from its begin to its end.
StepSplit splitStep(base::ScopeId root, base::TimeNs begin, base::TimeNs end,
                    const std::vector<base::TraceEvent>& events);

/// What a step's own device memory came to at its peak, by category.
base::CategoryBytes peakInside(const base::StepTemplate& step);

/// Where the step's own tensors begin.
std::uint64_t lowestAddress(const base::StepTemplate& step);

/// The templates of the steps that one tracer has seen. Their ids are the run's (RunTrace::takeTemplate).
class StepTemplates {
public:
    struct Entry {
        std::uint64_t signature = 0;
        std::shared_ptr<const base::StepTemplate> step;
        std::string name; ///< of the step
    };

    /// Null: none. Entries stay where they are until the next add() or clear().
    const Entry* bySignature(std::uint64_t signature) const;
    const Entry* byId(std::optional<std::uint32_t> id) const;
    /// REQUIRES that step.id is higher than those before it.
    const Entry& add(std::uint64_t signature, base::StepTemplate step, std::string name);
    void clear() { entries_.clear(); }

private:
    std::vector<Entry> entries_; ///< by id
};

} // namespace vitrine::kernels
