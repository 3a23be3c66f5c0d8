// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Conditions on the change of a result, "peak_bytes>+2%", for scripts that guard against slower or larger runs. Pure
// functions; any thread.

#include <string>
#include <vector>

#include "engine/workload/experiment/run_comparison.h"

namespace vitrine::app {

/// A change that is not wanted. The change is B − A.
struct RunCondition {
    std::string text;    ///< as it was written
    std::string path;    ///< "peak_bytes"
    bool above = true;   ///< holds where the change is above the limit, else below it
    bool percent = true; ///< the limit is in percent of A, else in the unit of the field
    double limit = 0;
};

/// "PATH>+LIMIT" or "PATH<-LIMIT", where LIMIT is a percentage ("2%"), bytes with a unit ("100MiB") or a number in the
/// unit of the field ("0.5" seconds). Throws BadInput that names the text; a path that no workload declares and none
/// of `results` has is answered with the nearest known one.
RunCondition parseCondition(const std::string& text, const std::vector<engine::ResultChange>& results);

struct ConditionResult {
    std::string condition;
    bool holds = false;   ///< the change is not wanted, and more than noise
    bool noise = false;   ///< it would hold, but repeats differ by as much
    std::string sentence; ///< "peak_bytes>+2%: holds, +3.1 % (16 GiB to 16.5 GiB)"
};
/// Throws BadInput when a run does not have the result.
ConditionResult checkCondition(const RunCondition& condition, const engine::ComparedRun& a,
                               const engine::ComparedRun& b, const std::vector<engine::ResultChange>& results);

} // namespace vitrine::app
