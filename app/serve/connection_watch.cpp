// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/connection_watch.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace vitrine::app {
namespace {

constexpr int kTickMs = 1000;

epoll_event interest(std::uint64_t number) {
    epoll_event event{};
    event.events = EPOLLRDHUP | EPOLLONESHOT;
    event.data.u64 = number;
    return event;
}

} // namespace

ConnectionWatch::ConnectionWatch(std::chrono::seconds patience)
    : patience_(patience), epoll_(::epoll_create1(EPOLL_CLOEXEC)), quit_(::eventfd(0, EFD_CLOEXEC)) {
    epoll_event quit{};
    quit.events = EPOLLIN;
    if (epoll_ < 0 || quit_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, quit_, &quit) != 0) {
        const std::string why = std::strerror(errno);
        ::close(epoll_);
        ::close(quit_);
        throw base::Unsupported("connections cannot be watched: " + why);
    }
    thread_ = std::thread([this] { loop(); });
}

ConnectionWatch::~ConnectionWatch() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(quit_, &one, sizeof one);
    thread_.join();
    ::close(epoll_);
    ::close(quit_);
}

void ConnectionWatch::add(int socket) {
    const std::lock_guard lock(mutex_);
    connections_[socket] = {next_, {}, Clock::now()};
    sockets_[next_] = socket;
    // Asks for nothing until a request is answered.
    epoll_event nothing{};
    nothing.events = EPOLLONESHOT;
    nothing.data.u64 = next_;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &nothing);
    ++next_;
}

void ConnectionWatch::remove(int socket) {
    const std::lock_guard lock(mutex_);
    if (const auto found = connections_.find(socket); found != connections_.end()) {
        sockets_.erase(found->second.number);
        connections_.erase(found);
        ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
    }
}

void ConnectionWatch::answering(int socket, std::function<void()> onGone) {
    const std::lock_guard lock(mutex_);
    if (const auto found = connections_.find(socket); found != connections_.end()) {
        found->second.onGone = std::move(onGone);
        epoll_event event = interest(found->second.number);
        ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &event);
    }
}

void ConnectionWatch::answered(int socket) {
    const std::lock_guard lock(mutex_);
    if (const auto found = connections_.find(socket); found != connections_.end()) {
        found->second.onGone = {};
        found->second.since = Clock::now();
    }
}

void ConnectionWatch::gone(std::uint64_t number) {
    std::function<void()> call;
    {
        const std::lock_guard lock(mutex_);
        const auto socket = sockets_.find(number);
        if (socket == sockets_.end()) {
            return;
        }
        Connection& connection = connections_.at(socket->second);
        call = std::exchange(connection.onGone, {});
        connection.since = Clock::now();
    }
    if (call) {
        call();
    }
}

void ConnectionWatch::shutSlow() {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (const auto& [socket, connection] : connections_) {
        if (!connection.onGone && now - connection.since > patience_) {
            ::shutdown(socket, SHUT_RDWR);
        }
    }
}

void ConnectionWatch::loop() {
    auto looked = Clock::now();
    for (;;) {
        std::array<epoll_event, 64> events{};
        const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kTickMs);
        for (int i = 0; i < count; ++i) {
            const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
            if (number == 0) {
                return;
            }
            gone(number);
        }
        if (Clock::now() - looked >= std::chrono::milliseconds(kTickMs)) {
            looked = Clock::now();
            shutSlow();
        }
    }
}

} // namespace vitrine::app
