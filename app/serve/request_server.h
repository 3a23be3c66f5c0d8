// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The endpoint through which OpenAI's clients feed a run of the workload serve.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/workload/serve/serve.h"

namespace vitrine::app {

struct RequestServerOptions {
    std::string host = "127.0.0.1"; ///< an address or a name
    int port = 0;                   ///< 0: any that is free
    std::string apiKey;             ///< empty: none is asked for
    /// Web pages of these origins ("http://localhost:3000") may read answers; "*": all pages.
    std::vector<std::string> allowedOrigins;
    std::string model;            ///< as the experiment names it
    std::string servedName;       ///< what clients call it; empty: the model's name, or the last part of its folder's
    std::int64_t maxQueue = 4096; ///< requests that wait for a slot at most
    std::int64_t maxConnections = 4096;
    std::chrono::seconds drain{5}; ///< what requests under way get when the server is to stop
};

class RequestServer {
public:
    virtual ~RequestServer() = default;
    /// "http://127.0.0.1:8000". The port is taken from the beginning; requests that come before the model is loaded are
    /// answered with 503.
    virtual const std::string& url() const = 0;
    /// What clients call the model.
    virtual const std::string& modelName() const = 0;
    virtual engine::RequestFeed& feed() = 0;
    /// What is called once, on the run's thread, when requests may come, and what is reported while they run. Before
    /// the run.
    virtual void onReady(std::function<void(const engine::ServedModel&)> call) = 0;
    virtual void onStatus(std::function<void(const engine::ServeStatus&)> call) = 0;
    /// From any thread: new requests get 503; those under way end or, when options.drain has passed, are cancelled;
    /// then the feed is over.
    virtual void stop() = 0;
    /// Once the run has ended: writes what clients have not read yet, for a moment, and closes all connections.
    virtual void close() = 0;

    /// Opens the port. Throws BadInput for an address that cannot be had and for what is no origin, Unsupported when
    /// the system allows too few open files.
    static std::unique_ptr<RequestServer> make(const RequestServerOptions& options);
};

} // namespace vitrine::app
