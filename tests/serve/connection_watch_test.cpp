// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/connection_watch.h"

#include <array>
#include <atomic>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vitrine::app {
namespace {

constexpr std::chrono::seconds kLong{60};

struct Pair {
    Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0); }
    ~Pair() {
        ::close(ends[0]);
        closeClient();
    }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;
    void closeClient() {
        if (ends[1] >= 0) {
            ::close(ends[1]);
            ends[1] = -1;
        }
    }
    std::array<int, 2> ends{};
};

TEST(ConnectionWatch, TellsThatAClientIsGone) {
    Pair pair;
    ConnectionWatch watch(kLong);
    watch.add(pair.ends[0]);
    std::promise<void> gone;
    watch.answering(pair.ends[0], [&] { gone.set_value(); });
    auto notified = gone.get_future();
    EXPECT_EQ(notified.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    pair.closeClient();
    EXPECT_EQ(notified.wait_for(kLong), std::future_status::ready);
    watch.answered(pair.ends[0]);
    watch.remove(pair.ends[0]);
}

TEST(ConnectionWatch, TellsOfOneThatWasGoneBefore) {
    Pair pair;
    ConnectionWatch watch(kLong);
    watch.add(pair.ends[0]);
    pair.closeClient();
    std::promise<void> gone;
    watch.answering(pair.ends[0], [&] { gone.set_value(); });
    EXPECT_EQ(gone.get_future().wait_for(kLong), std::future_status::ready);
    watch.remove(pair.ends[0]);
}

TEST(ConnectionWatch, SaysNothingBetweenRequests) {
    Pair pair;
    ConnectionWatch watch(kLong);
    watch.add(pair.ends[0]);
    std::atomic<int> calls = 0;
    for (int i = 0; i < 3; ++i) {
        watch.answering(pair.ends[0], [&] { ++calls; });
        watch.answered(pair.ends[0]);
    }
    pair.closeClient();
    watch.remove(pair.ends[0]);
    // Another one with the same number of its socket is another one.
    Pair other;
    watch.add(other.ends[0]);
    watch.answering(other.ends[0], [&] { ++calls; });
    pollfd nothing{};
    ::poll(&nothing, 0, 50);
    EXPECT_EQ(calls, 0);
    watch.remove(other.ends[0]);
}

TEST(ConnectionWatch, ShutsAConnectionThatSendsNoRequest) {
    ConnectionWatch watch(std::chrono::seconds(0));
    const auto isOpen = [](const Pair& pair) {
        pollfd end{pair.ends[1], POLLIN, 0};
        return ::poll(&end, 1, 0) == 0;
    };
    // Where this thread stood still between the two calls, the watch may have found it without a request: another one.
    std::unique_ptr<Pair> served;
    do {
        if (served) {
            watch.remove(served->ends[0]);
        }
        served = std::make_unique<Pair>();
        watch.add(served->ends[0]);
        watch.answering(served->ends[0], [] {});
    } while (!isOpen(*served));
    Pair slow;
    watch.add(slow.ends[0]);
    pollfd end{slow.ends[1], POLLIN, 0};
    EXPECT_EQ(::poll(&end, 1, 60'000), 1) << "the client sees its end";
    char byte = 0;
    EXPECT_EQ(::recv(slow.ends[1], &byte, 1, 0), 0);
    EXPECT_TRUE(isOpen(*served)) << "one that is served stays";
    watch.remove(slow.ends[0]);
    watch.remove(served->ends[0]);
}

} // namespace
} // namespace vitrine::app
