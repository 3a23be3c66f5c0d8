// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/http_rules.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <netinet/in.h>

#include "app/serve/http_reader.h"

namespace vitrine::app {
namespace {

bool isModelPath(std::string_view url) {
    return url == kModelsPath || (url.starts_with(kModelsPath) && url.substr(kModelsPath.size()).starts_with('/') &&
                                  url.size() > kModelsPath.size() + 1);
}

bool isPostPath(std::string_view url) {
    return url == kChatPath || url == kCompletionsPath;
}

/// "localhost" of "LocalHost:8000", "::1" of "[::1]:8000".
std::string hostName(std::string_view host) {
    if (host.starts_with('[')) {
        return lowerCase(host.substr(1, host.find(']') - 1));
    }
    return lowerCase(host.substr(0, host.find(':')));
}

/// A numeric address always means the same machine; a name can be pointed at another one.
bool isOfThisMachine(const std::string& name) {
    std::array<unsigned char, sizeof(in6_addr)> address{};
    return name.empty() || name == "localhost" || name.ends_with(".localhost") ||
           ::inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
           ::inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

void checkKey(const std::string& authorization, const std::string& apiKey) {
    constexpr std::string_view kScheme = "bearer ";
    std::string_view given = authorization;
    if (lowerCase(given.substr(0, kScheme.size())) != kScheme) {
        throw ApiError(401, "an API key is needed: Authorization: Bearer KEY", {}, "missing_api_key");
    }
    given.remove_prefix(kScheme.size());
    given.remove_prefix(std::min(given.find_first_not_of(' '), given.size()));
    if (!equalInConstantTime(given, apiKey)) {
        throw ApiError(401, "the API key is wrong", {}, "invalid_api_key");
    }
}

void checkBodyHeaders(const HttpHeaders& headers) {
    // A web page of another site can send other content types, or none, without asking the server first. Browsers then
    // name the page in the header Origin.
    const std::string type = lowerCase(headers.contentType.substr(0, headers.contentType.find(';')));
    const std::string_view bare = std::string_view(type).substr(0, type.find_last_not_of(" \t") + 1);
    if (bare != "application/json" && !(bare.empty() && headers.origin.empty())) {
        throw ApiError(415, bare.empty() ? "Content-Type: missing; it must be application/json"
                                         : fmt::format("Content-Type: \"{}\" is not application/json", bare));
    }
    if (headers.contentLength.empty() && headers.transferEncoding.empty()) {
        throw ApiError(411, "Content-Length: missing; say how long the body is, or send it in chunks", {},
                       "length_required");
    }
    if (bodyLength(headers).value_or(kMostBodyBytes + 1) > kMostBodyBytes) {
        throw bodyTooLarge();
    }
}

} // namespace

std::optional<std::uint64_t> bodyLength(const HttpHeaders& headers) {
    const std::string& text = headers.contentLength;
    std::uint64_t length = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), length);
    const bool whole = problem == std::errc() && end == text.data() + text.size();
    return whole || text.empty() ? std::optional(length) : std::nullopt;
}

bool equalInConstantTime(std::string_view given, std::string_view secret) {
    unsigned different = given.size() == secret.size() ? 0 : 1;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const char right = secret.empty() ? '\0' : secret[i % secret.size()];
        different |= static_cast<unsigned>(static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(right));
    }
    return different == 0;
}

const char* allowedMethods(std::string_view url) {
    return isPostPath(url) ? "POST" : "GET, HEAD";
}

ApiError bodyTooLarge() {
    return {413, fmt::format("the body is larger than {} MiB", kMostBodyBytes >> 20)};
}

void checkHeaders(const HttpHeaders& headers, const std::string& apiKey, bool loopback) {
    if (loopback && !isOfThisMachine(hostName(headers.host))) {
        throw ApiError(403, fmt::format("Host: \"{}\" is not a name of this machine", headers.host));
    }
    const bool posts = isPostPath(headers.url);
    if (!posts && !isModelPath(headers.url) && headers.url != kHealthPath && headers.url != kMetricsPath) {
        throw ApiError(404,
                       fmt::format("{}: unknown; there are POST {}, POST {}, GET {}, GET {} and GET {}", headers.url,
                                   kChatPath, kCompletionsPath, kModelsPath, kHealthPath, kMetricsPath),
                       {}, "unknown_url");
    }
    if (headers.preflight) {
        return;
    }
    if (!apiKey.empty() && headers.url != kHealthPath) {
        checkKey(headers.authorization, apiKey);
    }
    const bool gets = headers.method == "GET" || headers.method == "HEAD";
    if (posts ? headers.method != "POST" : !gets) {
        throw ApiError(405, fmt::format("{} takes {}", headers.url, allowedMethods(headers.url)), {},
                       "method_not_allowed");
    }
    if (posts) {
        checkBodyHeaders(headers);
    }
}

} // namespace vitrine::app
