// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What becomes of each field of a request's body: of OpenAI's API, of vLLM, SGLang, llama.cpp and TGI. A field that is
// in no row is refused, so that nothing that a client asks for is passed over in silence.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "app/serve/api_request.h"

namespace vitrine::app {

enum class FieldUse : std::uint8_t {
    Used,     ///< parseApiRequest() reads or judges its value
    Harmless, ///< no value changes the answer
    Refused,  ///< only a value that changes nothing is taken
};

enum class FieldOf : std::uint8_t { Both, Chat, Completions };

struct RequestField {
    std::string_view name;
    FieldOf endpoint = FieldOf::Both;
    FieldUse use = FieldUse::Used;
    /// Refused: the values that change nothing, as a JSON array. Null is one for every field.
    std::string_view neutral;
    std::string_view reason; ///< Harmless: why; Refused: why, and what to do instead
};

/// A field whose values mean different things at the endpoints has a row for each.
std::span<const RequestField> requestFields();

/// Throws ApiError with status 400 for the first field that is refused, unknown or of the other endpoint.
void checkRequestFields(const nlohmann::json& body, Endpoint endpoint);

} // namespace vitrine::app
