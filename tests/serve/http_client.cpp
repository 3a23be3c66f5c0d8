// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/serve/http_client.h"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fmt/format.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vitrine::test {

namespace {

using nlohmann::json;

int connectTo(int port, bool blocking) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (socket < 0 || (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 && // NOLINT
                       errno != EINPROGRESS)) {
        throw std::runtime_error(fmt::format("no connection to port {}: errno {}", port, errno));
    }
    return socket;
}

std::string headerValue(const std::string& headers, std::string_view name) {
    const std::size_t at = headers.find(fmt::format("\r\n{}: ", name));
    if (at == std::string::npos) {
        return {};
    }
    const std::size_t begin = at + name.size() + 4;
    return headers.substr(begin, headers.find("\r\n", begin) - begin);
}

/// Takes the first whole answer off `in`; nothing while it is not whole. `ended`: nothing more comes.
std::optional<HttpReply> takeReply(std::string& in, bool ended) {
    const std::size_t split = in.find("\r\n\r\n");
    if (split == std::string::npos) {
        return ended ? std::optional(HttpReply{}) : std::nullopt;
    }
    HttpReply reply;
    reply.headers = in.substr(0, split + 2);
    reply.status = std::atoi(in.c_str() + in.find(' '));
    if (reply.status == 100) {
        in.erase(0, split + 4); // the answer is still to come
        return takeReply(in, ended);
    }
    std::size_t at = split + 4;
    if (headerValue(reply.headers, "Transfer-Encoding") == "chunked") {
        for (;;) {
            const std::size_t line = in.find("\r\n", at);
            const std::size_t size = line == std::string::npos ? 0 : std::strtoul(in.c_str() + at, nullptr, 16);
            if (line == std::string::npos || in.size() < line + 2 + size + 2) {
                return ended ? std::optional(reply) : std::nullopt;
            }
            reply.body += in.substr(line + 2, size);
            at = line + 2 + size + 2;
            if (size == 0) {
                break;
            }
        }
    } else {
        const std::size_t size = std::strtoul(headerValue(reply.headers, "Content-Length").c_str(), nullptr, 10);
        if (in.size() < at + size) {
            return ended ? std::optional(reply) : std::nullopt;
        }
        reply.body = in.substr(at, size);
        at += size;
    }
    reply.complete = true;
    in.erase(0, at);
    return reply;
}

} // namespace

std::string postText(std::string_view path, std::string_view body, std::string_view more) {
    return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}Content-Length: "
                       "{}\r\n\r\n{}",
                       path, more, body.size(), body);
}

std::string getText(std::string_view path, std::string_view more) {
    return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, more);
}

HttpConnection::HttpConnection(int port) : socket_(connectTo(port, true)) {}

HttpConnection::~HttpConnection() {
    close();
}

void HttpConnection::close() {
    if (socket_ >= 0) {
        ::close(socket_);
        socket_ = -1;
    }
}

void HttpConnection::send(std::string_view text) const {
    while (!text.empty()) {
        const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
        if (count <= 0) {
            return; // the server closed: its answer says why
        }
        text.remove_prefix(static_cast<std::size_t>(count));
    }
}

bool HttpConnection::receive() {
    pollfd ready{socket_, POLLIN, 0};
    if (::poll(&ready, 1, 60'000) <= 0) {
        return false;
    }
    std::array<char, 16384> bytes{};
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (count <= 0) {
        return false;
    }
    in_.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
}

HttpReply HttpConnection::reply() {
    for (;;) {
        if (auto reply = takeReply(in_, false)) {
            return *reply;
        }
        if (!receive()) {
            return *takeReply(in_, true);
        }
    }
}

bool HttpConnection::waitFor(std::string_view text) {
    while (in_.find(text) == std::string::npos) {
        if (!receive()) {
            return false;
        }
    }
    return true;
}

HttpReply request(int port, std::string_view text) {
    HttpConnection connection(port);
    connection.send(text);
    return connection.reply();
}

HttpReply post(int port, std::string_view path, const json& body, std::string_view more) {
    return request(port, postText(path, body.dump(), more));
}

std::vector<json> events(const std::string& stream, bool* done) {
    std::vector<json> out;
    bool seen = false;
    for (std::size_t at = 0; at < stream.size();) {
        const std::size_t end = stream.find("\n\n", at);
        const std::string event = stream.substr(at, end == std::string::npos ? end : end - at);
        at = end == std::string::npos ? stream.size() : end + 2;
        seen = event == "data: [DONE]";
        if (!seen) {
            out.push_back(json::parse(event.substr(std::string_view("data: ").size())));
        }
    }
    if (done != nullptr) {
        *done = seen;
    }
    return out;
}

std::vector<HttpReply> manyRequests(int port, const std::vector<std::string>& requests, std::chrono::seconds patience) {
    struct Client {
        int socket = -1;
        std::size_t sent = 0;
        std::string in;
    };
    std::vector<HttpReply> replies(requests.size());
    std::vector<Client> clients(requests.size());
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < clients.size(); ++i) {
        clients[i].socket = connectTo(port, false);
        epoll_event event{};
        event.events = EPOLLIN | EPOLLOUT;
        event.data.u64 = i;
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].socket, &event);
    }
    std::size_t open = clients.size();
    const auto deadline = std::chrono::steady_clock::now() + patience;
    std::vector<epoll_event> ready(256);
    std::array<char, 65536> bytes{};
    while (open > 0 && std::chrono::steady_clock::now() < deadline) {
        const int count = ::epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()), 100);
        for (int e = 0; e < count; ++e) {
            const std::size_t i = ready[static_cast<std::size_t>(e)].data.u64;
            Client& client = clients[i];
            if ((ready[static_cast<std::size_t>(e)].events & EPOLLOUT) != 0) {
                const std::string_view rest = std::string_view(requests[i]).substr(client.sent);
                const ssize_t sent = ::send(client.socket, rest.data(), rest.size(), MSG_NOSIGNAL);
                client.sent += sent > 0 ? static_cast<std::size_t>(sent) : 0;
                if (client.sent == requests[i].size()) {
                    epoll_event event{};
                    event.events = EPOLLIN;
                    event.data.u64 = i;
                    ::epoll_ctl(epoll, EPOLL_CTL_MOD, client.socket, &event);
                }
            }
            const ssize_t got = ::recv(client.socket, bytes.data(), bytes.size(), 0);
            if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
                continue;
            }
            client.in.append(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
            if (auto reply = takeReply(client.in, got <= 0)) {
                replies[i] = std::move(*reply);
                ::close(client.socket);
                client.socket = -1;
                --open;
            }
        }
    }
    for (const Client& client : clients) {
        if (client.socket >= 0) {
            ::close(client.socket);
        }
    }
    ::close(epoll);
    return replies;
}

} // namespace vitrine::test
