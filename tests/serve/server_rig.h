// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A server and its run inside the test.

#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/runner/host/run_host.h"
#include "app/serve/request_server.h"
#include "tests/serve/http_client.h"

namespace vitrine::test {

class ServerRig {
public:
    struct Options {
        std::string model = "synthetic:tiny-llama";
        nlohmann::json more = nlohmann::json::object(); ///< keys of the experiment
        std::string session;
        app::RequestServerOptions server;
    };

    explicit ServerRig(Options options);
    ServerRig() : ServerRig(Options{}) {}
    ~ServerRig(); ///< stops it
    ServerRig(const ServerRig&) = delete;
    ServerRig& operator=(const ServerRig&) = delete;

    int port() const { return port_; }
    const std::string& name() const { return name_; }
    /// A body of a completion with these tokens as its prompt.
    nlohmann::json body(const nlohmann::json& prompt, int maxTokens) const;
    HttpReply complete(const nlohmann::json& body) const { return post(port_, "/v1/completions", body); }
    HttpReply chat(const nlohmann::json& body) const { return post(port_, "/v1/chat/completions", body); }
    /// GET /health
    nlohmann::json health() const;
    /// Waits until `wanted` is true of health(); false after a minute.
    bool becomes(const std::function<bool(const nlohmann::json& health)>& wanted) const;
    /// Waits until no request runs or waits and no page is used; false after a minute.
    bool becomesIdle() const;

    app::RequestServer& server() { return *server_; }
    void stop() { server_->stop(); }
    /// Stops it and waits for the end.
    app::RunOutcome end();

private:
    std::string name_;
    int port_ = 0;
    std::unique_ptr<app::RequestServer> server_;
    std::unique_ptr<app::RunHost> host_;
    bool ended_ = false;
    app::RunOutcome outcome_;
};

/// The tokens of a prompt; different salts give different ones.
std::vector<std::int32_t> promptTokens(int length, int salt, int vocab = 256);

/// What one-by-one generation answers to each of the prompts, greedily and without end tokens, as the rig's server
/// does.
std::vector<std::vector<std::int32_t>> oneByOne(const std::string& model,
                                                const std::vector<std::vector<std::int32_t>>& prompts, int newTokens);

} // namespace vitrine::test
