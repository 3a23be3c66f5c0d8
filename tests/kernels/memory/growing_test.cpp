// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/growing.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include "base/error.h"
#include "kernels/memory/memory.h"
#include "kernels/memory/memory_options.h"
#include "tests/bytes.h"
#include "tests/kernels/memory/memory_testing.h"

namespace vitrine::kernels {
namespace {

using test::kMiB;
constexpr std::uint64_t kUnit = 2 * kMiB;

Tag kvTag() {
    return {base::MemoryCategory::KvCache, "kv", DType::U8, {}};
}

struct GrowingFixture : MemoryTest {};

TEST_F(GrowingFixture, WhatIsBackedStaysWhereItIs) {
    const auto memory = make(false, {.deviceBudget = 64 * kMiB});
    const auto range = memory->reserveRange(40 * kMiB, kvTag());
    EXPECT_EQ(range->capacity(), 40 * kMiB);
    EXPECT_EQ(range->backed(), 0U);
    EXPECT_EQ(memory->statistics().reserved, 0U) << "addresses are no memory";
    std::byte* const first = range->data();
    range->grow(1000, kvTag());
    EXPECT_EQ(range->backed(), kUnit);
    EXPECT_EQ(memory->statistics().reserved, kUnit);
    std::memset(first, 0x3C, kUnit);
    range->grow(33 * kMiB, kvTag());
    EXPECT_EQ(range->data(), first);
    EXPECT_EQ(range->backed(), 34 * kMiB);
    EXPECT_EQ(first[kUnit - 1], std::byte{0x3C});
    std::memset(first + kUnit, 0x11, 32 * kMiB);
    range->shrink(kUnit + 1);
    EXPECT_EQ(range->backed(), 34 * kMiB) << "a piece goes back whole";
    range->shrink(kUnit);
    EXPECT_EQ(range->backed(), kUnit);
    EXPECT_EQ(memory->statistics().reserved, kUnit);
    EXPECT_EQ(first[0], std::byte{0x3C});
    range->grow(2 * kUnit, kvTag());
    EXPECT_EQ(first[kUnit], std::byte{0}) << "the old pages went back to the system";
}

TEST_F(GrowingFixture, UseIsReportedAsAllocationsAndEndsWithTheRange) {
    const auto memory = make(true, {.deviceBudget = 64 * kMiB});
    auto range = memory->reserveRange(40 * kMiB, kvTag());
    range->grow(3 * kMiB, kvTag());
    range->enter(0, 1000, kvTag());
    range->enter(kMiB, 500, kvTag());
    EXPECT_EQ(memory->statistics().current, 1500U);
    EXPECT_THROW(range->enter(kMiB, 500, kvTag()), base::Internal) << "twice";
    EXPECT_THROW(range->enter(4 * kMiB, 1, kvTag()), base::Internal) << "not backed";
    range->leave(0);
    EXPECT_EQ(memory->statistics().current, 500U);
    range.reset();
    EXPECT_EQ(memory->statistics().current, 0U);
    EXPECT_EQ(memory->statistics().reserved, 0U);
    const auto reported = sink.all<base::AllocationEvent>();
    ASSERT_EQ(reported.size(), 2U);
    EXPECT_EQ(reported[1].address - reported[0].address, kMiB);
    EXPECT_EQ(sink.all<base::FreeEvent>().size(), 2U);
}

TEST_F(GrowingFixture, TheBudgetRefusesGrowthWithItsFactsAndNothingChanges) {
    const auto memory = make(false, {.deviceBudget = 16 * kMiB});
    const auto range = memory->reserveRange(64 * kMiB, kvTag());
    range->grow(6 * kMiB, kvTag());
    range->enter(0, 6 * kMiB, kvTag());
    try {
        range->grow(18 * kMiB, kvTag());
        FAIL() << "18 MiB fitted into 16";
    } catch (const base::OutOfMemory& error) {
        EXPECT_EQ(error.details().requested, 12 * kMiB);
        EXPECT_EQ(error.details().budget, 16 * kMiB);
        EXPECT_EQ(error.details().held, 6 * kMiB);
        EXPECT_EQ(error.details().category, "kv_cache");
        ASSERT_FALSE(error.details().holders.empty());
    }
    EXPECT_EQ(range->backed(), 6 * kMiB);
    EXPECT_FALSE(range->tryGrow(64 * kMiB + 1)) << "more than its addresses";
    EXPECT_EQ(sink.all<base::OutOfMemoryEvent>().size(), 1U) << "trying is not reported";
    {
        const Tensor other(memory->general(), base::MemoryCategory::Other, "t", DType::U8, Shape{8 << 20});
    }
    EXPECT_TRUE(range->tryGrow(16 * kMiB)) << "what the allocator keeps for later goes back first";
    EXPECT_EQ(memory->statistics().reserved, 16 * kMiB);
    EXPECT_THROW(memory->reserveRange(std::uint64_t{1} << 60, kvTag()), base::OutOfMemory);
}

TEST_F(GrowingFixture, MappingIsReportedToWhoPricesIt) {
    std::uint64_t reported = 0;
    MemoryOptions options;
    options.mapUnit = 64 << 10;
    options.onMapped = [&](std::uint64_t bytes) { reported += bytes; };
    const auto memory = make(true, options);
    const auto range = memory->reserveRange(kMiB, kvTag());
    range->grow(1, kvTag());
    EXPECT_EQ(reported, 64U << 10);
    range->grow(200'000, kvTag());
    EXPECT_EQ(reported, 256U << 10);
}

TEST_F(GrowingFixture, GuardedMemoryIsPoisoned) {
    const auto memory = make(false, {.guardBytes = true});
    const auto range = memory->reserveRange(8 * kMiB, kvTag());
    range->grow(1, kvTag());
    EXPECT_NE(range->data()[1000], std::byte{0});
}

/// Random growth and shrinking of several ranges beside other tensors: the same on Meta and on the host; addresses
/// stay, what was written stays, the budget holds, and nothing is left at the end.
TEST_F(GrowingFixture, RandomTracesAreTheSameOnMetaAndHost) {
    const auto run = [&](bool meta, std::uint32_t seed) {
        const std::uint64_t limit = 48 * kMiB;
        const auto memory =
            make(meta, {.deviceBudget = limit, .failFrom = seed % 4 == 0 ? 60U : 0U, .mapUnit = 64 << 10});
        std::mt19937 random(seed);
        std::vector<std::uint64_t> log;
        {
            struct One {
                std::unique_ptr<GrowingRange> range;
                std::byte* data = nullptr;
                std::uint64_t backed = 0; ///< written with the low byte of each 4 KiB
            };
            std::vector<One> ranges;
            for (int i = 0; i < 3; ++i) {
                One& one = ranges.emplace_back();
                one.range = memory->reserveRange(32 * kMiB, kvTag());
                one.data = one.range->data();
            }
            std::vector<Tensor> others;
            for (int step = 0; step < 300; ++step) {
                One& one = ranges[random() % ranges.size()];
                const std::uint64_t bytes = random() % (34 * kMiB);
                const auto action = random() % 6;
                if (action < 3) {
                    log.push_back(one.range->tryGrow(bytes) ? 1 : 0);
                } else if (action == 3) {
                    one.range->shrink(bytes);
                } else if (action == 4 && others.size() < 4) {
                    try {
                        others.emplace_back(memory->general(), base::MemoryCategory::Other, "t", DType::U8,
                                            Shape{static_cast<std::int64_t>(bytes % (8 * kMiB))});
                    } catch (const base::OutOfMemory&) {
                        log.push_back(2);
                    }
                } else {
                    others.clear();
                }
                EXPECT_EQ(one.range->data(), one.data);
                const std::uint64_t now = one.range->backed();
                for (std::uint64_t at = 0; !meta && at < now; at += 4096) {
                    const auto mark = static_cast<std::byte>(at >> 12);
                    EXPECT_TRUE(at >= one.backed || one.data[at] == mark);
                    one.data[at] = mark;
                }
                one.backed = now;
                EXPECT_LE(memory->statistics().reserved, limit);
                log.push_back(memory->statistics().reserved);
                log.push_back(now);
            }
        }
        EXPECT_EQ(memory->statistics().current, 0U);
        return log;
    };
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
        ASSERT_EQ(run(true, seed), run(false, seed)) << seed;
    }
}

} // namespace
} // namespace vitrine::kernels
