// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/thread_ranks.h"

#include <atomic>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "base/error.h"

namespace vitrine::kernels {
namespace {

void onThreads(const std::vector<std::unique_ptr<Communicator>>& ranks,
               const std::function<void(Communicator&)>& work) {
    std::vector<std::thread> threads;
    for (const std::unique_ptr<Communicator>& each : ranks) {
        threads.emplace_back([&] { work(*each); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

template <class Value> SentBytes sent(const Value& value) {
    return {reinterpret_cast<const std::byte*>(&value), sizeof value};
}

template <class Value> ReceivedBytes received(Value& value) {
    return {reinterpret_cast<std::byte*>(&value), sizeof value};
}

/// Every rank sends every other one a number, and one goes along all of them.
void round(Communicator& rank, int number) {
    const int size = rank.size();
    std::vector<int> mine, got(static_cast<std::size_t>(size), -1);
    for (int to = 0; to < size; ++to) {
        mine.push_back(rank.rank() * 1000 + to + number);
    }
    std::vector<SentBytes> sends;
    std::vector<ReceivedBytes> receives;
    for (int each = 0; each < size; ++each) {
        sends.push_back(sent(mine[static_cast<std::size_t>(each)]));
        receives.push_back(received(got[static_cast<std::size_t>(each)]));
    }
    rank.exchange("exchange", sends, receives);
    for (int from = 0; from < size; ++from) {
        EXPECT_EQ(got[static_cast<std::size_t>(from)], from * 1000 + rank.rank() + number);
    }
    int passed = rank.rank() == 0 ? number : -1;
    if (rank.rank() > 0) {
        rank.receive("receive", rank.rank() - 1, received(passed));
        EXPECT_EQ(passed, number);
    }
    if (rank.rank() + 1 < size) {
        rank.send("send", rank.rank() + 1, sent(passed));
    }
}

/// One rank leaves at a random moment, between two rounds or while others wait in one. All others end, and the same
/// ranks work again.
TEST(ThreadRanks, ARankThatLeavesEndsAllAndTheyWorkAgain) {
    std::mt19937 random{std::random_device{}()};
    for (const int size : {2, 3, 8}) {
        for (int trial = 0; trial < 40; ++trial) {
            const auto ranks = makeThreadRanks(size);
            const int failing = static_cast<int>(random() % static_cast<unsigned>(size));
            const int when = static_cast<int>(random() % 20);
            std::atomic<int> ended = 0;
            onThreads(ranks, [&](Communicator& rank) {
                try {
                    for (int number = 0; number < 20; ++number) {
                        if (rank.rank() == failing && number == when) {
                            rank.abort();
                            throw RankAborted("left");
                        }
                        round(rank, number);
                    }
                } catch (const RankAborted&) {
                    ++ended;
                }
            });
            EXPECT_EQ(ended, size);
            for (const std::unique_ptr<Communicator>& each : ranks) {
                each->recover();
            }
            onThreads(ranks, [](Communicator& rank) {
                for (int number = 0; number < 3; ++number) {
                    round(rank, number);
                }
            });
        }
    }
}

TEST(ThreadRanks, OtherSizesThanTheOtherRankSendsAreAMistake) {
    const auto ranks = makeThreadRanks(2);
    std::atomic<int> mistakes = 0;
    onThreads(ranks, [&](Communicator& rank) {
        const int wide = 1;
        short narrow = 0;
        try {
            if (rank.rank() == 0) {
                rank.send("send", 1, sent(wide));
            } else {
                rank.receive("receive", 0, received(narrow));
            }
        } catch (const RankAborted&) {
            ++mistakes;
        } catch (const base::Internal&) {
            ++mistakes;
            rank.abort();
        }
    });
    EXPECT_EQ(mistakes, 2);
}

TEST(LoneRank, SendsAndReceivesNothing) {
    const auto rank = makeLoneRank(2, 4);
    EXPECT_EQ(rank->rank(), 2);
    EXPECT_EQ(rank->size(), 4);
    int value = 7;
    const std::vector<SentBytes> sends(4, sent(value));
    const std::vector<ReceivedBytes> receives(4, received(value));
    rank->exchange("exchange", sends, receives);
    rank->receive("receive", 0, received(value));
    EXPECT_EQ(value, 7);
}

} // namespace
} // namespace vitrine::kernels
