// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Turns what clients ask for into requests of the engine: texts become tokens, and the command line gives the values
// that a request does not name.

#include <memory>
#include <string>
#include <vector>

#include "app/serve/api_request.h"
#include "app/serve/prompt_echo.h"
#include "engine/workload/serve/serve.h"

namespace vitrine::app {

/// Requests by choice: those of the first prompt, then those of the next one.
struct ServedRequests {
    std::vector<engine::GenerateRequest> requests;
    std::int64_t promptTokens = 0;                         ///< of all prompts, each counted once
    std::vector<std::shared_ptr<const PromptEcho>> echoes; ///< by choice; empty: none was asked for
};

/// Throws ApiError.
ServedRequests servedRequests(const engine::ServedModel& model, const ApiRequest& request);

/// The name that clients use: the last part of a folder's path, else the model as it was named.
std::string servedName(const std::string& model);

} // namespace vitrine::app
