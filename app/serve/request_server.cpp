// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/request_server.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "app/serve/http_server.h"
#include "app/serve/served_requests.h"
#include "base/error.h"
#include "base/log.h"

namespace vitrine::app {
namespace {

constexpr int kBacklog = 4096;
/// Open files beside connections: model, session, libraries, the system's own.
constexpr std::int64_t kOtherFiles = 128;

/// As many connections as open files allow; raises the limit as far as it goes.
std::int64_t allowConnections(std::int64_t wanted) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return wanted;
    }
    const auto needed = static_cast<rlim_t>(wanted + kOtherFiles);
    if (limit.rlim_cur < needed) {
        limit.rlim_cur = std::min(needed, limit.rlim_max);
        if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            ::getrlimit(RLIMIT_NOFILE, &limit);
        }
    }
    if (limit.rlim_cur >= needed) {
        return wanted;
    }
    const std::int64_t left = static_cast<std::int64_t>(limit.rlim_cur) - kOtherFiles;
    if (left < 1) {
        throw base::Unsupported(fmt::format("max_connections: the system allows {} open files, too few to serve; raise "
                                            "the limit (ulimit -n)",
                                            limit.rlim_cur));
    }
    base::logWarning(fmt::format("max_connections: {} instead of {}: the system allows {} open files; raise the limit "
                                 "(ulimit -n)",
                                 left, wanted, limit.rlim_cur));
    return left;
}

struct Listening {
    int socket = -1;
    int port = 0;
    bool loopback = false;
};

bool isLoopback(const sockaddr* address) {
    if (address->sa_family == AF_INET6) {
        return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0; // NOLINT
    }
    const auto* four = reinterpret_cast<const sockaddr_in*>(address); // NOLINT: as the sockets API wants it
    return (ntohl(four->sin_addr.s_addr) >> 24) == 127;
}

int portOf(int socket) {
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) { // NOLINT
        return 0;
    }
    return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port // NOLINT
                                             : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port); // NOLINT
}

Listening listenAt(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int problem = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (problem != 0) {
        throw base::BadInput(
            fmt::format("host: \"{}\" is no address of this machine: {}", host, ::gai_strerror(problem)));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    std::vector<const addrinfo*> entries;
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        // A name with IPv4 and IPv6 addresses is bound to IPv4, because clients try both.
        entries.insert(entry->ai_family == AF_INET ? entries.begin() : entries.end(), entry);
    }
    int error = 0;
    for (const addrinfo* entry : entries) {
        const int socket =
            ::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, entry->ai_protocol);
        const int on = 1;
        if (socket >= 0 && ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
            ::bind(socket, entry->ai_addr, entry->ai_addrlen) == 0 && ::listen(socket, kBacklog) == 0) {
            return {socket, portOf(socket), isLoopback(entry->ai_addr)};
        }
        error = errno;
        if (socket >= 0) {
            ::close(socket);
        }
    }
    throw base::BadInput(fmt::format("port: {} of {} cannot be had: {}; name another one, or 0 for any", port, host,
                                     std::strerror(error)));
}

/// What clients may call the model: its short name first.
std::vector<std::string> namesOf(const RequestServerOptions& options) {
    if (!options.servedName.empty()) {
        return {options.servedName};
    }
    std::vector<std::string> names{servedName(options.model)};
    if (names.front() != options.model) {
        names.push_back(options.model);
    }
    return names;
}

class HttpRequestServer final : public RequestServer {
public:
    explicit HttpRequestServer(const RequestServerOptions& options) : inbox_(options.maxQueue, options.drain) {
        HttpOptions http;
        http.apiKey = options.apiKey;
        http.origins = AllowedOrigins(options.allowedOrigins);
        http.modelNames = namesOf(options);
        modelName_ = http.modelNames.front();
        http.maxConnections = allowConnections(options.maxConnections);
        const Listening listening = listenAt(options.host, options.port);
        http.loopback = listening.loopback;
        if (!listening.loopback && options.apiKey.empty()) {
            base::logWarning(
                fmt::format("host: {} is open to other machines, and no API key is asked for", options.host));
        }
        const bool six = options.host.find(':') != std::string::npos;
        url_ = fmt::format("http://{}:{}", six ? "[" + options.host + "]" : options.host, listening.port);
        try {
            server_ = std::make_unique<HttpServer>(listening.socket, std::move(http), inbox_);
        } catch (...) {
            ::close(listening.socket);
            throw;
        }
    }

    const std::string& url() const override { return url_; }
    const std::string& modelName() const override { return modelName_; }
    engine::RequestFeed& feed() override { return inbox_; }
    void onReady(std::function<void(const engine::ServedModel&)> call) override { inbox_.onReady(std::move(call)); }
    void onStatus(std::function<void(const engine::ServeStatus&)> call) override { inbox_.onStatus(std::move(call)); }
    void stop() override { inbox_.stop(); }
    void close() override { server_->close(); }

private:
    Inbox inbox_;
    std::string url_, modelName_;
    std::unique_ptr<HttpServer> server_;
};

} // namespace

std::unique_ptr<RequestServer> RequestServer::make(const RequestServerOptions& options) {
    return std::make_unique<HttpRequestServer>(options);
}

} // namespace vitrine::app
