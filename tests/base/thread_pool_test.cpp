// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace vitrine::base {
namespace {

TEST(ThreadPool, CountsTheCaller) {
    EXPECT_EQ(ThreadPool(3).threads(), 3);
    EXPECT_EQ(ThreadPool(1).threads(), 1);
    EXPECT_GE(ThreadPool().threads(), 1);
    EXPECT_LE(ThreadPool().threads(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(ThreadPool, VisitsEveryIndexOnce) {
    for (const int threads : {1, 2, 5}) {
        ThreadPool pool(threads);
        for (const std::int64_t count : {0, 1, 2, 3, 7, 64, 1000, 4099}) {
            for (const std::int64_t grain : {-1, 0, 1, 3, 100, 5000}) {
                std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
                pool.parallelFor(count, grain, [&](std::int64_t begin, std::int64_t end, int worker) {
                    EXPECT_LT(begin, end);
                    EXPECT_GE(worker, 0);
                    EXPECT_LT(worker, threads);
                    EXPECT_GE(end - begin, std::min(grain, count));
                    for (std::int64_t i = begin; i < end; ++i) {
                        ++visits[static_cast<std::size_t>(i)];
                    }
                });
                for (const std::atomic<int>& visit : visits) {
                    ASSERT_EQ(visit.load(), 1) << threads << ' ' << count << ' ' << grain;
                }
            }
        }
    }
}

TEST(ThreadPool, ASmallLoopRunsOnTheCallingThreadInOnePiece) {
    ThreadPool pool(4);
    int calls = 0;
    pool.parallelFor(100, 64, [&](std::int64_t begin, std::int64_t end, int worker) {
        ++calls;
        EXPECT_EQ(begin, 0);
        EXPECT_EQ(end, 100);
        EXPECT_EQ(worker, 0);
    });
    EXPECT_EQ(calls, 1);
}

TEST(ThreadPool, SeveralThreadsWork) {
    ThreadPool pool(2);
    std::mutex mutex;
    std::set<std::thread::id> ids;
    // Each piece waits until two threads have come, so this ends only if the work is shared.
    pool.parallelFor(2, 1, [&](std::int64_t, std::int64_t, int) {
        {
            const std::lock_guard lock(mutex);
            ids.insert(std::this_thread::get_id());
        }
        for (int i = 0; i < 60'000; ++i) {
            {
                const std::lock_guard lock(mutex);
                if (ids.size() == 2) {
                    return;
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    EXPECT_EQ(ids.size(), 2U);
}

TEST(ThreadPool, AWorkerNumberIsUsedByOneThreadAtATime) {
    ThreadPool pool(4);
    std::vector<std::atomic<int>> inside(4);
    for (int round = 0; round < 200; ++round) {
        pool.parallelFor(16, 1, [&](std::int64_t, std::int64_t, int worker) {
            EXPECT_EQ(inside[static_cast<std::size_t>(worker)].fetch_add(1), 0);
            std::this_thread::yield();
            inside[static_cast<std::size_t>(worker)].fetch_sub(1);
        });
    }
}

TEST(ThreadPool, ResultsOfALoopAreVisibleToTheNext) {
    ThreadPool pool(3);
    std::vector<std::int64_t> values(300, 0); // not atomic: the pool must order the accesses
    for (int round = 1; round <= 2000; ++round) {
        pool.parallelFor(300, 1, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) {
                ++values[static_cast<std::size_t>(i)];
            }
        });
        ASSERT_EQ(values[static_cast<std::size_t>(round % 300)], round);
    }
}

TEST(ThreadPool, WorkersWakeUpAfterSleeping) {
    ThreadPool pool(3);
    for (int round = 0; round < 20; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        std::atomic<int> sum = 0;
        pool.parallelFor(12, 1,
                         [&](std::int64_t begin, std::int64_t end, int) { sum += static_cast<int>(end - begin); });
        ASSERT_EQ(sum.load(), 12);
    }
}

TEST(ThreadPool, TheFirstExceptionComesBackAndThePoolStaysUsable) {
    for (const int threads : {1, 2, 4}) {
        ThreadPool pool(threads);
        for (int round = 0; round < 50; ++round) {
            try {
                pool.parallelFor(64, 1, [&](std::int64_t begin, std::int64_t end, int) {
                    if (begin <= 20 && 20 < end) {
                        throw std::runtime_error("piece 20");
                    }
                });
                FAIL() << "nothing thrown";
            } catch (const std::runtime_error& error) {
                ASSERT_STREQ(error.what(), "piece 20");
            }
            std::atomic<int> visits = 0;
            pool.parallelFor(
                64, 1, [&](std::int64_t begin, std::int64_t end, int) { visits += static_cast<int>(end - begin); });
            ASSERT_EQ(visits.load(), 64);
        }
    }
}

TEST(ThreadPool, AllPiecesThrow) {
    ThreadPool pool(4);
    for (int round = 0; round < 100; ++round) {
        EXPECT_THROW(pool.parallelFor(64, 1, [](std::int64_t, std::int64_t, int) { throw std::logic_error("no"); }),
                     std::logic_error);
    }
}

TEST(ThreadPool, ANestedLoopRunsOnItsThreadWithItsNumber) {
    ThreadPool pool(3);
    std::atomic<int> visits = 0;
    pool.parallelFor(12, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
        const std::thread::id self = std::this_thread::get_id();
        for (std::int64_t i = begin; i < end; ++i) {
            pool.parallelFor(10, 1, [&](std::int64_t innerBegin, std::int64_t innerEnd, int innerWorker) {
                EXPECT_EQ(std::this_thread::get_id(), self);
                EXPECT_EQ(innerWorker, worker);
                visits += static_cast<int>(innerEnd - innerBegin);
            });
        }
    });
    EXPECT_EQ(visits.load(), 120);
}

TEST(ThreadPool, SeveralCallersTakeTurns) {
    ThreadPool pool(2);
    std::vector<std::thread> callers;
    callers.reserve(3);
    std::atomic<std::int64_t> sum = 0;
    for (int c = 0; c < 3; ++c) {
        callers.emplace_back([&] {
            for (int round = 0; round < 200; ++round) {
                pool.parallelFor(16, 1, [&](std::int64_t begin, std::int64_t end, int) { sum += end - begin; });
            }
        });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    EXPECT_EQ(sum.load(), 3 * 200 * 16);
}

TEST(ThreadPool, ComesAndGoesWithoutWork) {
    for (int round = 0; round < 100; ++round) {
        const ThreadPool pool(3);
    }
}

} // namespace
} // namespace vitrine::base
