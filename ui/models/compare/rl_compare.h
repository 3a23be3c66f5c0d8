// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two runs of reinforcement learning, aligned by step and phase: their figures in the last step that both have and over
// the last tenth of these steps, and the main differences in words. Changes are from A to B. Pure functions; any
// thread.

#include <QString>
#include <cstdint>

#include "ui/models/common/flat_tree.h"
#include "ui/models/rl/rl_run.h"

namespace vitrine::ui {

/// The steps that both runs have.
struct RlCommonSteps {
    std::int64_t first = 0, last = 0; ///< last 0: there are none
    std::int64_t tail = 0;            ///< first step of the last tenth

    static RlCommonSteps of(const RlRun& a, const RlRun& b);
    bool none() const { return last == 0; }
};

/// Figure, A, B, A to B in the last common step, and the same of means over the last tenth where that has several
/// steps. Figures that neither run has are left out. Without a common step there are no rows.
FlatTreePtr rlCompareTable(const RlRun& a, const RlRun& b);
/// "Step 60, the last that both have, and means over steps 55 to 60"
QString rlCompareNote(const RlRun& a, const RlRun& b);

struct RlCompareWords {
    QString sentence; ///< what became of the reward, and the largest change of what it took
    QString other;    ///< the other changes of what it took; may be empty
};
RlCompareWords rlCompareWords(const RlRun& a, const RlRun& b);

} // namespace vitrine::ui
