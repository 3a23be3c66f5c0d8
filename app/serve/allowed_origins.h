// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which web pages may read answers (CORS). A browser sends the origin of a page, and gives the page an answer only
// where a header of the answer allows that origin. Before most requests it asks with OPTIONS (a preflight).

#include <string>
#include <string_view>
#include <vector>

#include "app/serve/http_reader.h"

namespace vitrine::app {

class AllowedOrigins {
public:
    AllowedOrigins() = default;
    /// "SCHEME://HOST", "SCHEME://HOST:PORT", or "*" for all. Throws BadInput for anything else.
    explicit AllowedOrigins(const std::vector<std::string>& origins);

    bool allows(std::string_view origin) const;
    /// Whether a page of an allowed origin asks what it may send.
    bool isPreflight(const HttpRequest& request) const;
    /// Headers of every answer to a request from this origin (empty: it named none); none where no origin is allowed.
    HttpHeaderList headersFor(std::string_view origin) const;
    /// Headers of the answer to a preflight beyond these. `methods`: of the path.
    static HttpHeaderList preflightHeaders(const HttpRequest& request, const char* methods);

private:
    std::vector<std::string> origins_; ///< in lower case, as browsers send them
    bool all_ = false;
};

} // namespace vitrine::app
