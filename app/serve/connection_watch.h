// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Notices clients that close their connection while the HTTP library does not look at it, and ends connections that
// take too long to send a request. One thread serves all connections.

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace vitrine::app {

class ConnectionWatch {
public:
    /// A connection that has not sent a whole request within `patience` is shut down.
    explicit ConnectionWatch(std::chrono::seconds patience);
    ~ConnectionWatch();
    ConnectionWatch(const ConnectionWatch&) = delete; // a thread holds its address
    ConnectionWatch& operator=(const ConnectionWatch&) = delete;

    /// A connection has begun; it waits for its first request. `socket` stays open until remove().
    void add(int socket);
    void remove(int socket);
    /// Its request is whole: from now on `onGone` is called once, on the watch's thread, when the client closes its
    /// side.
    void answering(int socket, std::function<void()> onGone);
    /// Its answer was sent, and it waits for the next request. A call of `onGone` may still be running when this
    /// returns.
    void answered(int socket);

private:
    using Clock = std::chrono::steady_clock;
    struct Connection {
        std::uint64_t number = 0;
        std::function<void()> onGone; ///< empty: waits for a request
        Clock::time_point since;
    };

    void loop();
    void gone(std::uint64_t number);
    void shutSlow();

    const std::chrono::seconds patience_;
    int epoll_ = -1, quit_ = -1;
    std::mutex mutex_;                                ///< guards what follows
    std::unordered_map<int, Connection> connections_; ///< by socket
    std::unordered_map<std::uint64_t, int> sockets_;  ///< by number: sockets' numbers are reused
    std::uint64_t next_ = 1;
    std::thread thread_;
};

} // namespace vitrine::app
