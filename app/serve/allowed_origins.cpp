// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/allowed_origins.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::app {
namespace {

bool isOrigin(std::string_view text) {
    const std::size_t scheme = text.find("://");
    if (scheme == 0 || scheme == std::string_view::npos || scheme + 3 == text.size()) {
        return false;
    }
    const auto isPlain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.'; };
    const auto isOfHost = [&](unsigned char c) { return isPlain(c) || c == ':' || c == '[' || c == ']' || c == '_'; };
    return std::ranges::all_of(text.substr(0, scheme), isPlain) &&
           std::ranges::all_of(text.substr(scheme + 3), isOfHost);
}

/// The names of a list that clients of OpenAI's library send, beside those that every client does.
std::string statisticsHeaders(std::string_view asked) {
    constexpr std::string_view kPrefix = "x-stainless-";
    const std::string names = lowerCase(asked);
    std::string out;
    for (std::size_t begin = 0; begin < names.size();) {
        const std::size_t end = std::min(names.find(',', begin), names.size());
        std::string_view name = std::string_view(names).substr(begin, end - begin);
        name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
        const auto isPlain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; };
        if (name.starts_with(kPrefix) && std::ranges::all_of(name, isPlain)) {
            out += fmt::format(", {}", name);
        }
        begin = end + 1;
    }
    return out;
}

} // namespace

AllowedOrigins::AllowedOrigins(const std::vector<std::string>& origins) {
    for (const std::string& origin : origins) {
        if (origin == "*") {
            all_ = true;
        } else if (isOrigin(origin)) {
            origins_.push_back(lowerCase(origin));
        } else {
            throw base::BadInput(fmt::format("allow_origin: \"{}\" is not an origin; give SCHEME://HOST or "
                                             "SCHEME://HOST:PORT without a path, or * for all",
                                             origin));
        }
    }
}

bool AllowedOrigins::allows(std::string_view origin) const {
    return !origin.empty() && (all_ || std::ranges::find(origins_, lowerCase(origin)) != origins_.end());
}

bool AllowedOrigins::isPreflight(const HttpRequest& request) const {
    return request.method == "OPTIONS" && allows(request.header("origin")) &&
           !request.header("access-control-request-method").empty();
}

HttpHeaderList AllowedOrigins::headersFor(std::string_view origin) const {
    if (origins_.empty() && !all_) {
        return {};
    }
    HttpHeaderList headers = {{"Vary", "Origin"}};
    if (allows(origin)) {
        headers.emplace_back("Access-Control-Allow-Origin", all_ ? std::string("*") : std::string(origin));
    }
    return headers;
}

HttpHeaderList AllowedOrigins::preflightHeaders(const HttpRequest& request, const char* methods) {
    return {{"Access-Control-Allow-Methods", methods},
            {"Access-Control-Allow-Headers",
             "authorization, content-type" + statisticsHeaders(request.header("access-control-request-headers"))},
            {"Access-Control-Max-Age", "600"}};
}

} // namespace vitrine::app
