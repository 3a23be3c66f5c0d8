// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the Run view says of a run of reinforcement learning: what became of it, some of its steps, and answers of the
// first and the last step. Pure function.

#include <QString>
#include <vector>

#include "sessions/run_info.h"

namespace vitrine::ui {

struct RlResultPart {
    QString title; ///< who says it: "user", "answer 2, reward 0.50"; or what it is
    QString text;
    bool dimmed = false;
};

/// None for another run, and for one that sampled no answers.
std::vector<RlResultPart> rlResultParts(const sessions::RunInfo& run);

} // namespace vitrine::ui
