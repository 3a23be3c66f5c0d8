// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A saved run for other tools. Files are complete or not there: each is written under a passing name first. Only
// earlier files of the same kind are replaced (base/output_file.h).

#include <string>
#include <vector>

#include "sessions/session_file.h"

namespace vitrine::app {

/// Tables into `folder`, which is made when it is missing: allocations.csv, scopes.csv, counters.csv, spans.csv,
/// kernels.csv, memory.csv, and of batches batch_steps.csv, batch_slots.csv, batch_requests.csv, kv_pages.csv (heads
/// alone where a run served none). Their columns: profiler/export/csv.h. Returns the paths. Throws BadInput when the
/// run is not there or a file cannot be written.
std::vector<std::string> exportCsv(const sessions::SessionFile& session, sessions::RunId run,
                                   const std::string& folder);

/// Chrome trace JSON, which Perfetto opens; `allocations` adds a slice for each block.
void exportChromeTrace(const sessions::SessionFile& session, sessions::RunId run, const std::string& file,
                       bool allocations);

/// The newest batch of rollouts that the run trained on, as `vitrine rl --rollouts` takes it. Throws BadInput when the
/// run has none, or when records of it were lost.
void exportRollouts(const sessions::SessionFile& session, sessions::RunId run, const std::string& file);

} // namespace vitrine::app
