// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rules that need only the headers of a request: path, method, key, host, type and length of the body.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "app/serve/api_request.h"

namespace vitrine::app {

/// Headers that are missing are empty.
struct HttpHeaders {
    std::string method, url, host, contentType, contentLength, transferEncoding, authorization, origin;
    bool preflight = false; ///< asked by a web page of an allowed origin: it may use OPTIONS, and shows no key
};

inline constexpr std::string_view kHealthPath = "/health";
inline constexpr std::string_view kMetricsPath = "/metrics";
inline constexpr std::string_view kModelsPath = "/v1/models";
inline constexpr std::string_view kChatPath = "/v1/chat/completions";
inline constexpr std::string_view kCompletionsPath = "/v1/completions";

/// Throws ApiError: 401, 403, 404, 405, 411, 413, 415. `apiKey` empty: none is asked for. `loopback`: the server
/// listens to this machine only; a Host that is not a name of this machine is refused, because it comes from a web page
/// that was redirected here (DNS rebinding).
void checkHeaders(const HttpHeaders& headers, const std::string& apiKey, bool loopback);

/// What Content-Length says; 0 where it is missing, nothing where it is no number.
std::optional<std::uint64_t> bodyLength(const HttpHeaders& headers);

/// Takes as long for a wrong text as for the right one.
bool equalInConstantTime(std::string_view given, std::string_view secret);

/// The value of the header Allow for a known path.
const char* allowedMethods(std::string_view url);

ApiError bodyTooLarge();

} // namespace vitrine::app
