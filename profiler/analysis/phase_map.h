// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Lays one training step over another: the time of B for each time of A and back, phase by phase and layer by layer,
// linear inside. Both directions are monotone. Times count from the begin of each step. While A is in a phase that B
// does not have, B stands still; a phase that only B has is passed over.

#include <vector>

#include "profiler/analysis/step_anatomy.h"

namespace vitrine::profiler {

class PhaseMap {
public:
    PhaseMap() = default;
    PhaseMap(const StepAnatomy& a, const StepAnatomy& b);
    /// Both run from 0, each at its own pace.
    static PhaseMap identity(base::TimeNs longest);

    base::TimeNs timeInB(base::TimeNs a) const;
    base::TimeNs timeInA(base::TimeNs b) const;

    /// A time of A that belongs to a time of B.
    struct Knot {
        base::TimeNs a = 0, b = 0;
    };
    const std::vector<Knot>& knots() const { return knots_; }

private:
    void add(base::TimeNs a, base::TimeNs b);
    std::vector<Knot> knots_; ///< both ascend, never both stand still
};

} // namespace vitrine::profiler
