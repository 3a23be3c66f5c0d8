// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The one place where exceptions become an exit code and one sentence.

#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "app/runner/host/run_host.h"

namespace vitrine::app {

/// Status, kind, exit code and sentence of an exception; run and metrics stay empty.
RunOutcome outcomeOf(const std::exception_ptr& error);

/// {"kind", "message"}, and for an out-of-memory error its details: "what", "requested_bytes", "budget_bytes",
/// "held_bytes", "largest_free_bytes", "holders": [{"category", "layer", "bytes"}].
nlohmann::json errorJson(const std::exception_ptr& error);

/// Without line breaks and other control characters, so that a failure stays one line.
std::string oneLine(std::string_view text);

/// The "ended" message of run_host.h.
nlohmann::json endedMessage(const RunOutcome& outcome);

/// "done", "failed", "out_of_memory", "cancelled"
std::string_view outcomeStatusName(RunOutcome::Status status);

} // namespace vitrine::app
