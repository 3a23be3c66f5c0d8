// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/http_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace vitrine::app {
namespace {

constexpr int kTickMs = 1000;
constexpr int kRetryMs = 20; ///< before accepting again where descriptors had run out

} // namespace

WakeUp::WakeUp() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0) {
        throw base::Unsupported(std::string("serve: connections cannot be watched: ") + std::strerror(errno));
    }
}

WakeUp::~WakeUp() {
    ::close(descriptor_);
}

void WakeUp::set() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
}

void WakeUp::clear() const noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(descriptor_, &count, sizeof count);
}

// --- one loop

HttpLoop::HttpLoop(HttpSite& site, std::int64_t most, std::chrono::seconds patience)
    : site_(site), most_(most), patience_(patience), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeUp_.descriptor(), &event) != 0) {
        const std::string why = std::strerror(errno);
        ::close(epoll_);
        throw base::Unsupported("serve: connections cannot be watched: " + why);
    }
    thread_ = std::thread([this] { loop(); });
}

HttpLoop::~HttpLoop() {
    post([](Work& work) { work.quit = true; });
    thread_.join();
    entries_.clear();
    for (const int socket : work_.sockets) {
        ::close(socket);
    }
    ::close(epoll_);
}

void HttpLoop::post(const std::function<void(Work&)>& change) {
    {
        const std::lock_guard lock(mutex_);
        change(work_);
    }
    wakeUp_.set();
}

void HttpLoop::add(int socket) {
    ++connected_;
    post([socket](Work& work) { work.sockets.push_back(socket); });
}

void HttpLoop::makeRoom() {
    post([](Work& work) { ++work.rooms; });
}

void HttpLoop::drain() {
    post([](Work& work) { work.drain = true; });
}

void HttpLoop::wake(std::uint64_t connection) {
    post([connection](Work& work) { work.woken.push_back(connection); });
}

void HttpLoop::loop() {
    auto looked = Clock::now();
    std::array<epoll_event, 256> events{};
    for (;;) {
        const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kTickMs);
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            const auto found = entries_.find(event.data.u64);
            if (found != entries_.end()) {
                settle(event.data.u64, found->second.connection->happened(event.events));
            }
        }
        if (!takeWork()) {
            return;
        }
        if (Clock::now() - looked >= std::chrono::milliseconds(kTickMs)) {
            looked = Clock::now();
            lookAtTime();
        }
    }
}

/// What other threads left. False: the end.
bool HttpLoop::takeWork() {
    wakeUp_.clear();
    Work work;
    {
        const std::lock_guard lock(mutex_);
        work = std::exchange(work_, {});
    }
    for (const std::uint64_t number : work.woken) {
        if (const auto found = entries_.find(number); found != entries_.end()) {
            settle(number, found->second.connection->goOn());
        }
    }
    for (const int socket : work.sockets) {
        open(socket);
    }
    for (; work.rooms > 0; --work.rooms) {
        endLongestIdle();
    }
    if (work.drain) {
        draining_ = true;
        for (auto& [number, entry] : entries_) {
            entry.connection->endSoon();
        }
        endIdle();
    }
    return !work.quit;
}

void HttpLoop::open(int socket) {
    if (static_cast<std::int64_t>(entries_.size()) >= most_) {
        endLongestIdle();
    }
    const bool full = static_cast<std::int64_t>(entries_.size()) >= most_;
    const std::uint64_t number = next_++;
    Entry entry;
    entry.connection = std::make_unique<HttpConnection>(socket, site_, [this, number] { wake(number); });
    epoll_event event{};
    event.data.u64 = number;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) {
        --connected_;
        return;
    }
    HttpConnection& connection = *entry.connection;
    entries_.emplace(number, std::move(entry));
    if (draining_) {
        connection.endSoon();
    }
    settle(number, full
                       ? connection.refuse(ApiError(kUnavailable, "all connections of the server are in use; try again",
                                                    {}, "too_many_connections"))
                       : connection.goOn());
}

void HttpLoop::settle(std::uint64_t number, bool lives) {
    const auto found = entries_.find(number);
    Entry& entry = found->second;
    const bool idle = lives && entry.connection->idle();
    idle_ += (idle ? 1 : 0) - (entry.idle ? 1 : 0);
    entry.idle = idle;
    if (!lives || (idle && draining_)) {
        idle_ -= idle ? 1 : 0;
        entries_.erase(found); // its descriptor leaves epoll with its end
        --connected_;
        return;
    }
    const std::uint32_t interest = entry.connection->interest();
    if (interest != entry.interest) {
        epoll_event event{};
        event.events = interest;
        event.data.u64 = number;
        ::epoll_ctl(epoll_, EPOLL_CTL_MOD, entry.connection->socket(), &event);
        entry.interest = interest;
    }
}

void HttpLoop::endLongestIdle() {
    auto longest = entries_.end();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
        const bool before =
            longest == entries_.end() || at->second.connection->since() < longest->second.connection->since();
        longest = at->second.idle && before ? at : longest;
    }
    if (longest != entries_.end()) {
        settle(longest->first, false);
    }
}

void HttpLoop::endIdle() {
    std::vector<std::uint64_t> idle;
    for (const auto& [number, entry] : entries_) {
        if (entry.idle) {
            idle.push_back(number);
        }
    }
    for (const std::uint64_t number : idle) {
        settle(number, false);
    }
}

void HttpLoop::lookAtTime() {
    std::vector<std::uint64_t> numbers;
    numbers.reserve(entries_.size());
    for (const auto& [number, entry] : entries_) {
        numbers.push_back(number);
    }
    const auto now = Clock::now();
    for (const std::uint64_t number : numbers) {
        settle(number, entries_.at(number).connection->inTime(now, patience_));
    }
}

// --- all loops

HttpLoops::HttpLoops(HttpSite& site, std::int64_t mostConnections, std::chrono::seconds patience) {
    const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
    const std::int64_t count = std::min(std::clamp<std::int64_t>(cores, 2, 4), mostConnections);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t share = mostConnections / count + (i < mostConnections % count ? 1 : 0);
        loops_.push_back(std::make_unique<HttpLoop>(site, share, patience));
    }
}

void HttpLoops::accept(int listening) {
    listening_ = listening;
    acceptor_ = std::thread([this] { acceptAll(); });
}

HttpLoops::~HttpLoops() {
    close({});
}

std::int64_t HttpLoops::connections() const {
    std::int64_t sum = 0;
    for (const auto& loop : loops_) {
        sum += loop->connections();
    }
    return sum;
}

/// The one with the fewest connections; where all are full, one that can make room.
HttpLoop& HttpLoops::loopForNext() const {
    const auto fewest =
        std::ranges::min_element(loops_, {}, [](const auto& loop) { return loop->connections() - loop->most(); });
    return (*fewest)->connections() < (*fewest)->most() ? **fewest : mostIdle();
}

HttpLoop& HttpLoops::mostIdle() const {
    return **std::ranges::max_element(loops_, {}, [](const auto& loop) { return loop->idle(); });
}

void HttpLoops::acceptAll() {
    std::array<pollfd, 2> waits{{{listening_, POLLIN, 0}, {quit_.descriptor(), POLLIN, 0}}};
    bool warned = false;
    for (;;) {
        if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
            base::logWarning(std::string("serve: no more clients are accepted: ") + std::strerror(errno));
            return;
        }
        if (waits[1].revents != 0) {
            return;
        }
        const int socket = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket >= 0) {
            loopForNext().add(socket);
            continue;
        }
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) {
            continue; // nobody is there any more
        }
        if (!std::exchange(warned, true)) {
            base::logWarning(std::string("serve: a client cannot be accepted, so idle connections are closed: ") +
                             std::strerror(errno));
        }
        mostIdle().makeRoom();
        ::poll(&waits[1], 1, kRetryMs); // the client waits in the system's queue
    }
}

void HttpLoops::stopAccepting() {
    if (acceptor_.joinable()) {
        quit_.set();
        acceptor_.join();
        ::shutdown(listening_, SHUT_RDWR);
        ::close(listening_);
    }
}

void HttpLoops::close(std::chrono::milliseconds most) {
    stopAccepting();
    for (const auto& loop : loops_) {
        loop->drain();
    }
    constexpr std::chrono::milliseconds kStep{5};
    for (auto left = most; left.count() > 0 && connections() > 0; left -= kStep) {
        std::this_thread::sleep_for(kStep);
    }
    loops_.clear();
}

} // namespace vitrine::app
