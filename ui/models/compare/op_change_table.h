// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the time of prefill went in two runs, op by op. Changes are B − A. Pure function; any thread.

#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// Op, A, B, B − A, largest change first, the least of them together. Empty unless both runs recorded every op with its
/// own time: with the profile "full", on a CPU or in a plan, and both on the same. On a GPU ops do not run when the
/// host says so.
FlatTreePtr prefillOpTable(const sessions::RunInfo& runA, const profiler::RunTimeline* a, const sessions::RunInfo& runB,
                           const profiler::RunTimeline* b);

} // namespace vitrine::ui
