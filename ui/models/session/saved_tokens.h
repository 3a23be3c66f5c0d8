// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tokens that a session keeps of a run: texts "tokens.000000", "tokens.000001", ..., one JSON value a line.
// Pure function; any thread.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/common/run_controller.h"

namespace vitrine::ui {

/// A token as a run reports it and as a session keeps it: an object with id, text, channel, logprob, time and top.
StreamedToken tokenOf(const nlohmann::json& object);

/// Tokens of the run's first request, in order. Lines that are no tokens are left out; none: the run kept no tokens.
std::vector<StreamedToken> savedTokens(const std::vector<sessions::RunText>& texts);

} // namespace vitrine::ui
