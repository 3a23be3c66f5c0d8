// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/timeline/run_timeline.h"
#include "sessions/session_file.h"

namespace vitrine::app {

/// A saved run, from all its chunks. Throws BadInput when the file lacks the run or holds damaged chunks.
std::shared_ptr<const profiler::RunTimeline> loadTimeline(const sessions::SessionFile& session, sessions::RunId run);

/// The same of every rank that the run had, by rank.
std::vector<std::shared_ptr<const profiler::RunTimeline>> loadRankTimelines(const sessions::SessionFile& session,
                                                                            sessions::RunId run);

/// As loadTimeline; null where the run has more than `mostRows` rows of events.
std::shared_ptr<const profiler::RunTimeline> loadShortTimeline(const sessions::SessionFile& session,
                                                               sessions::RunId run, std::uint64_t mostRows);

} // namespace vitrine::app
