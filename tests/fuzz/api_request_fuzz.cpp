// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Bodies of the HTTP endpoint. The first byte chooses the endpoint.

#include "app/serve/api_request.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "app/serve/api_reply.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine::app;
    if (size == 0) {
        return 0;
    }
    const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        const ApiRequest request = parseApiRequest(body, data[0] % 2 == 0 ? Endpoint::Completions : Endpoint::Chat);
        if (request.choices() == 0 || request.choices() > kMostChoices || request.stop.size() > kMostStops) {
            __builtin_trap();
        }
    } catch (const ApiError& error) {
        if (error.status != 400 || errorChunk(error).empty()) {
            __builtin_trap();
        }
    }
    return 0;
}
