// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which runs of a session are batches, which trace they replay and what distinguishes them. Pure functions; any thread.

#include <QString>
#include <QStringList>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sessions/session_file.h"

namespace vitrine::ui {

/// Settings that distinguish batches of one trace, slots included, in the order in which they are said.
std::span<const char* const> batchSettingKeys();
std::map<std::string, std::string> batchSettings(const sessions::RunInfo& run);
/// "preemption swap", "16 slots", "KV fp8"
QString batchSettingText(std::string_view key, const std::string& value);

/// A run whose answers share steps, which the Batching view shows: batches, servers, rollouts; planned ones included.
bool isBatchRun(const sessions::RunInfo& run);
/// A run of the workload batch itself, whose numbers are those of requests: no server, and no rollouts.
bool repliesToTrace(const sessions::RunInfo& run);
/// The newest batch run that replays the same trace as `run` in another mode, else with other slots; 0: none.
sessions::RunId batchPartner(const std::vector<sessions::RunInfo>& runs, sessions::RunId run);
/// The traces that a session's batch runs replay with their models: the newest run of each, the newest trace first.
std::vector<sessions::RunId> batchTraces(const std::vector<sessions::RunInfo>& runs);
bool sameBatchTrace(const sessions::RunInfo& a, const sessions::RunInfo& b);
/// "uniform, 64 requests, seed 11"
QString traceText(const sessions::RunInfo& run);
/// What a batch run did in a few sentences; empty for another run and for what no metric says.
QStringList batchSentences(const sessions::RunInfo& run);

} // namespace vitrine::ui
