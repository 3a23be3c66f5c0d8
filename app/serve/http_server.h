// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the endpoint answers at which path. Connections are in http_loop.h and http_connection.h; the contents of
// answers come from the Inbox and its exchanges.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/serve/allowed_origins.h"
#include "app/serve/http_loop.h"
#include "app/serve/inbox.h"

namespace vitrine::app {

struct HttpOptions {
    std::string apiKey; ///< empty: none is asked for
    /// Names by which clients may call the model. /v1/models lists the first one.
    std::vector<std::string> modelNames;
    AllowedOrigins origins; ///< of web pages
    std::int64_t maxConnections = 4096;
    bool loopback = true;              ///< only names of this machine are taken as Host
    std::chrono::seconds patience{60}; ///< for a whole request, and for an answer that the client does not read
};

class HttpServer final : private HttpSite {
public:
    /// Takes over the listening socket, which does not block. Throws Unsupported; the socket stays the caller's then.
    HttpServer(int listening, HttpOptions options, Inbox& inbox);
    ~HttpServer() override;
    HttpServer(const HttpServer&) = delete; // connections hold its address
    HttpServer& operator=(const HttpServer&) = delete;

    /// Waits a moment for answers that are being sent, then ends all connections. Afterwards nothing is served.
    void close();

private:
    void checkHead(const HttpRequest& request) const override;
    HttpAnswer answer(const HttpRequest& request) override;
    HttpReply errorReply(const ApiError& error, const HttpRequest& request) const override;
    HttpHeaderList headersOf(const HttpRequest& request) const override;
    void answered(int status) override;
    bool hold(std::int64_t bytes) override;

    HttpReply modelsReply(const std::string& path) const;
    HttpReply healthReply() const;
    HttpReply metricsReply() const;
    std::shared_ptr<Exchange> submit(const HttpRequest& request);
    bool isKnown(const std::string& name) const;
    ApiError unknownModel(const std::string& name) const;
    ApiError notThere() const;
    std::string newId(std::string_view prefix);

    const HttpOptions options_;
    Inbox& inbox_;
    const std::int64_t created_;
    const std::uint64_t salt_;
    std::atomic<std::uint64_t> ids_ = 0;
    std::atomic<std::int64_t> heldBytes_ = 0; ///< of bodies
    std::unique_ptr<HttpLoops> loops_;        ///< null: closed
};

} // namespace vitrine::app
