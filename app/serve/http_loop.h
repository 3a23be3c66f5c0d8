// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Threads of a server: one accepts clients, and a few loops with epoll serve all connections, each its own ones. No
// thread belongs to a client. Where connections or descriptors run out, the one that has waited longest for a request
// is closed.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "app/serve/http_connection.h"

namespace vitrine::app {

/// A descriptor that wakes whoever waits for it.
class WakeUp {
public:
    WakeUp(); ///< throws Unsupported
    ~WakeUp();
    WakeUp(const WakeUp&) = delete; // owns a descriptor
    WakeUp& operator=(const WakeUp&) = delete;
    int descriptor() const { return descriptor_; }
    void set() const noexcept;
    void clear() const noexcept;

private:
    int descriptor_ = -1;
};

class HttpLoop {
public:
    /// `most` connections; a request must be whole, and an answer move, within `patience`. Throws Unsupported.
    HttpLoop(HttpSite& site, std::int64_t most, std::chrono::seconds patience);
    ~HttpLoop();                        ///< ends what is left
    HttpLoop(const HttpLoop&) = delete; // a thread holds its address
    HttpLoop& operator=(const HttpLoop&) = delete;

    // --- any thread

    /// Takes over a socket that does not block. Where the loop is full, its longest idle connection ends; where none is
    /// idle, the new one gets 503.
    void add(int socket);
    /// Ends the longest idle connection, if there is one.
    void makeRoom();
    /// Idle connections end now, the others after their answers.
    void drain();
    void wake(std::uint64_t connection);
    std::int64_t connections() const { return connected_; }
    std::int64_t idle() const { return idle_; }
    std::int64_t most() const { return most_; }

private:
    using Clock = HttpConnection::Clock;
    struct Entry {
        std::unique_ptr<HttpConnection> connection;
        std::uint32_t interest = 0;
        bool idle = false;
    };
    struct Work {
        std::vector<int> sockets;
        std::vector<std::uint64_t> woken;
        int rooms = 0;
        bool drain = false;
        bool quit = false;
    };

    void loop();
    bool takeWork();
    void open(int socket);
    void endLongestIdle();
    void endIdle();
    /// `lives`: what the connection said; it ends, or waits for what it wants next.
    void settle(std::uint64_t number, bool lives);
    void lookAtTime();
    void post(const std::function<void(Work&)>& change);

    HttpSite& site_;
    const std::int64_t most_;
    const std::chrono::seconds patience_;
    int epoll_ = -1;
    WakeUp wakeUp_;
    std::atomic<std::int64_t> connected_ = 0, idle_ = 0;
    std::unordered_map<std::uint64_t, Entry> entries_; ///< by number, from 1; of the thread, as the next two
    std::uint64_t next_ = 1;
    bool draining_ = false;
    std::mutex mutex_; ///< guards work_
    Work work_;
    std::thread thread_;
};

/// Loops and the thread that accepts.
class HttpLoops {
public:
    /// Throws Unsupported.
    HttpLoops(HttpSite& site, std::int64_t mostConnections, std::chrono::seconds patience);
    ~HttpLoops();
    HttpLoops(const HttpLoops&) = delete; // threads hold its address
    HttpLoops& operator=(const HttpLoops&) = delete;

    /// Begins to accept clients; takes over the listening socket, which does not block.
    void accept(int listening);
    std::int64_t connections() const;
    /// Accepts no more, waits for answers that are being sent, but not longer than `most`, and ends all connections.
    void close(std::chrono::milliseconds most);

private:
    void acceptAll();
    void stopAccepting();
    HttpLoop& loopForNext() const;
    HttpLoop& mostIdle() const;

    int listening_ = -1;
    WakeUp quit_;
    std::vector<std::unique_ptr<HttpLoop>> loops_;
    std::thread acceptor_;
};

} // namespace vitrine::app
