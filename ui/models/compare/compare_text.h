// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changed between two runs, in words: those of engine/workload/experiment/comparison_words.h. Changes are B − A.
// Pure functions; any thread.

#include <QString>
#include <vector>

#include "engine/workload/experiment/run_comparison.h"
#include "sessions/session_file.h"

namespace vitrine::ui {

engine::ComparedRun comparedRun(const sessions::RunInfo& run);
std::vector<engine::ComparedRun> comparedRuns(const std::vector<sessions::RunInfo>& runs);

struct CompareText {
    QString sentence;      ///< the largest change
    QString cause;         ///< the largest one in the other direction
    QString answers;       ///< whether they differ; empty where a run has none
    QString notComparable; ///< one sentence; empty when everything may be compared
    bool nothing = false;  ///< nothing may be compared
    bool runAgain = false; ///< another run of B, under the conditions of now, would make its times comparable
    QString surroundings;  ///< all that are known, a line each: "driver version: 550 and 560"
};
/// `all` are the session's runs, among which repeats give the noise.
CompareText compareText(const sessions::RunInfo& a, const sessions::RunInfo& b,
                        const std::vector<sessions::RunInfo>& all);

/// "#12": how lists and heads call a run.
QString runNumber(const sessions::RunInfo& run);

} // namespace vitrine::ui
