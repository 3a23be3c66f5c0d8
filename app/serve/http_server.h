// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// HTTP: connections, headers, bodies and their limits, by libmicrohttpd (a few threads with epoll for all connections).
// The contents of answers come from the Inbox and its exchanges.

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "app/serve/connection_watch.h"
#include "app/serve/exchange.h"
#include "app/serve/inbox.h"

struct MHD_Daemon;
struct MHD_Connection;

namespace vitrine::app {

struct HttpOptions {
    std::string apiKey; ///< empty: none is asked for
    /// Names by which clients may call the model. /v1/models lists the first one.
    std::vector<std::string> modelNames;
    std::int64_t maxConnections = 4096;
    bool loopback = true;              ///< only names of this machine are taken as Host
    std::chrono::seconds patience{60}; ///< for a whole request
};

class HttpServer {
public:
    /// Takes over the listening socket. Throws Unsupported.
    HttpServer(int listening, HttpOptions options, Inbox& inbox);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete; // the library holds its address
    HttpServer& operator=(const HttpServer&) = delete;

    /// Waits a moment for answers that are being sent, then ends all connections. Afterwards nothing is served.
    void close();

private:
    class Call;
    friend struct HttpCallbacks;

    std::unique_ptr<Call> begin(MHD_Connection* connection, const char* url, const char* method);
    void check(Call& call, MHD_Connection* connection) const;
    /// Whether the connection goes on.
    bool answer(Call& call);
    std::optional<Exchange::Reply> take(Call& call);
    Exchange::Reply modelsReply(const std::string& url) const;
    Exchange::Reply healthReply() const;
    void submit(Call& call);
    bool isKnown(const std::string& name) const;
    ApiError unknownModel(const std::string& name) const;
    ApiError notThere() const;
    bool sendReply(Call& call, int status, const std::string& body) const;
    bool sendStream(Call& call) const;
    std::string newId(const char* prefix);

    const HttpOptions options_;
    Inbox& inbox_;
    ConnectionWatch watch_;
    const std::int64_t created_;
    const std::uint64_t salt_;
    std::atomic<std::uint64_t> ids_ = 0;
    std::atomic<std::size_t> heldBytes_ = 0; ///< of bodies
    std::mutex mutex_;                       ///< guards calls_
    std::unordered_set<Call*> calls_;
    MHD_Daemon* daemon_ = nullptr;
};

} // namespace vitrine::app
