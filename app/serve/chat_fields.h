// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The fields of a chat request that the model's chat template sees.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "app/serve/api_request.h"

namespace vitrine::app {

/// Reads messages, tools, tool_choice, documents, chat_template_kwargs, reasoning_effort, add_generation_prompt and
/// continue_final_message. `body` is the text of `value`, for the order of its keys. Throws ApiError with status 400.
void readChatFields(std::string_view body, const nlohmann::json& value, ApiRequest& request);

/// What the server was started with, under what the request asks for. Throws ApiError where the model's template reads
/// nothing of what the request gives it.
engine::ChatOptions chatOptionsOf(const engine::ChatFormat& format, const engine::ChatOptions& server,
                                  const ApiRequest& request);

} // namespace vitrine::app
