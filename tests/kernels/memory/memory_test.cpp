// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/memory.h"

#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "base/error.h"
#include "kernels/memory/arenas.h"
#include "kernels/memory/caching_allocator.h"
#include "kernels/memory/handover.h"
#include "kernels/memory/ledger.h"
#include "kernels/memory/memory_options.h"
#include "kernels/memory/physical.h"
#include "tests/bytes.h"
#include "tests/kernels/memory/memory_testing.h"

namespace vitrine::kernels {
namespace {

using base::MemoryCategory;

using test::kMiB;

struct MemoryFixture : MemoryTest {};

Tensor tensor(MemoryResource& resource, std::uint64_t bytes, MemoryCategory category = MemoryCategory::Activations) {
    return Tensor(resource, category, "t", DType::U8, Shape{static_cast<std::int64_t>(bytes)});
}

TEST_F(MemoryFixture, CategoriesAddUpAndPeakIsExact) {
    const auto memory = make(true, {.deviceBudget = 1024 * kMiB, .untracked = 5});
    std::mt19937 random(7);
    std::vector<std::pair<Tensor, std::uint64_t>> live;
    std::uint64_t total = 5;
    std::uint64_t peak = 5;
    for (int i = 0; i < 5000; ++i) {
        if (live.empty() || random() % 5 < 3) {
            const std::uint64_t bytes = random() % 100'000;
            const auto category = static_cast<MemoryCategory>(1 + random() % (base::kCategoryCount - 1));
            live.emplace_back(tensor(memory->general(), bytes, category), bytes);
            total += bytes;
        } else {
            const std::size_t victim = random() % live.size();
            total -= live[victim].second;
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
        }
        peak = std::max(peak, total);
        const MemoryStatistics& statistics = memory->statistics();
        ASSERT_EQ(statistics.current, total);
        ASSERT_EQ(statistics.peak, peak);
        std::uint64_t sum = 0;
        std::uint64_t sumAtPeak = 0;
        for (int c = 0; c < base::kCategoryCount; ++c) {
            sum += statistics.currentByCategory[static_cast<std::size_t>(c)];
            sumAtPeak += statistics.peakByCategory[static_cast<std::size_t>(c)];
        }
        ASSERT_EQ(sum, total);
        ASSERT_EQ(sumAtPeak, peak);
    }
}

TEST_F(MemoryFixture, BudgetRefusesWithFactsAndRecovers) {
    const auto memory = make(false, {.deviceBudget = 64 * kMiB, .untracked = 4 * kMiB});
    const Tensor held(memory->general(), MemoryCategory::Weights, "model.layers.3.w", DType::U8, Shape{32 << 20});
    try {
        const Tensor big(memory->general(), MemoryCategory::Logits, "logits", DType::F32, Shape{10, 1 << 20});
        FAIL() << "40 MiB fitted";
    } catch (const base::OutOfMemory& error) {
        EXPECT_EQ(error.details().requested, 40 * kMiB);
        EXPECT_EQ(error.details().budget, 64 * kMiB);
        EXPECT_EQ(error.details().held, 36 * kMiB);
        EXPECT_EQ(error.details().largestFree, 28 * kMiB);
        ASSERT_FALSE(error.details().holders.empty());
        EXPECT_EQ(error.details().holders[0].category, "weights");
        EXPECT_EQ(error.details().holders[0].layer, "layer 3");
        EXPECT_NE(error.message().find("logits"), std::string::npos);
    }
    ASSERT_EQ(sink.all<base::OutOfMemoryEvent>().size(), 1U);
    EXPECT_NO_THROW(tensor(memory->general(), 20 * kMiB));
    EXPECT_NO_THROW(tensor(memory->general(), 28 * kMiB)); // needs the cached 20 MiB segment back
}

TEST_F(MemoryFixture, SmallBudgetsAreUsedToTheirEnd) {
    for (const bool meta : {true, false}) {
        const auto memory = make(meta, {.deviceBudget = 3 * kMiB});
        const Tensor first = tensor(memory->general(), kMiB + 256);
        const Tensor second = tensor(memory->general(), 1000);
        EXPECT_EQ(memory->statistics().reserved, 2 * kMiB + 1024) << "a segment of 2 MiB no longer fits";
        const Tensor third = tensor(memory->general(), kMiB - 1024);
        EXPECT_EQ(memory->statistics().reserved, 3 * kMiB);
        EXPECT_THROW(tensor(memory->general(), 1000), base::OutOfMemory);
    }
}

TEST_F(MemoryFixture, PiecesNeverOverlap) {
    const auto memory = make(false, {.deviceBudget = 512 * kMiB});
    std::mt19937 random(11);
    std::map<std::uintptr_t, std::pair<Tensor, std::uint64_t>> live;
    for (int i = 0; i < 4000; ++i) {
        if (live.empty() || random() % 2 == 0) {
            const std::uint64_t bytes = random() % 3 == 0 ? random() % (4 * kMiB) : random() % 5000;
            Tensor piece = tensor(memory->general(), bytes);
            const auto address = reinterpret_cast<std::uintptr_t>(piece.view().data);
            ASSERT_EQ(address % kMemoryAlignment, 0U);
            const auto next = live.lower_bound(address);
            if (next != live.end()) {
                ASSERT_LE(address + bytes, next->first);
            }
            if (next != live.begin()) {
                const auto before = std::prev(next);
                ASSERT_LE(before->first + before->second.second, address);
            }
            live.emplace(address, std::make_pair(std::move(piece), bytes));
        } else {
            live.erase(std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size())));
        }
    }
    live.clear();
    EXPECT_EQ(memory->statistics().current, 0U);
}

TEST_F(MemoryFixture, MetaAndHostDecideAlike) {
    auto run = [&](bool meta) {
        sink.events.clear();
        const auto memory = make(meta, {.deviceBudget = 100 * kMiB});
        std::mt19937 random(3);
        std::vector<Tensor> live;
        std::vector<std::uint64_t> log;
        for (int i = 0; i < 3000; ++i) {
            if (live.empty() || random() % 5 < 3) {
                try {
                    live.push_back(tensor(memory->general(), random() % (3 * kMiB)));
                } catch (const base::OutOfMemory& error) {
                    log.push_back(error.details().largestFree);
                    live.erase(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(live.size() / 2));
                }
            } else {
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(random() % live.size()));
            }
            log.push_back(memory->statistics().reserved);
        }
        return log;
    };
    EXPECT_EQ(run(true), run(false));
}

TEST_F(MemoryFixture, StepArenaGivesTheSameAddressesForTheSameSequence) {
    const auto memory = make(false, {.deviceBudget = 64 * kMiB});
    StepArena& arena = memory->step();
    arena.ensureCapacity(1 * kMiB);
    auto step = [&] {
        arena.beginStep();
        std::vector<void*> addresses;
        Tensor a = tensor(arena, 1000);
        Tensor b = tensor(arena, 5000);
        addresses.push_back(a.view().data);
        addresses.push_back(b.view().data);
        a.reset();
        const Tensor c = tensor(arena, 700);
        addresses.push_back(c.view().data);
        return addresses;
    };
    const auto first = step();
    EXPECT_EQ(first, step());
    EXPECT_EQ(first[0], first[2]); // first fit takes the hole that `a` left
    EXPECT_EQ(arena.highWater(), 1024U + 5120U);
    const Tensor out = tensor(arena, 1);
    EXPECT_THROW(arena.beginStep(), base::Internal);
    EXPECT_THROW(arena.ensureCapacity(2 * kMiB), base::Internal);
}

TEST_F(MemoryFixture, TheStepArenaGivesItsMemoryBackAndTakesItAgain) {
    const auto memory = make(false, {.deviceBudget = 64 * kMiB});
    StepArena& arena = memory->step();
    arena.ensureCapacity(3 * kMiB);
    {
        const Tensor held = tensor(arena, 1000);
        EXPECT_THROW(arena.giveBack(), base::Internal);
    }
    arena.giveBack();
    EXPECT_EQ(arena.capacity(), 0U);
    EXPECT_EQ(memory->statistics().reserved, 0U);
    arena.giveBack();
    arena.ensureCapacity(2 * kMiB);
    arena.beginStep();
    const Tensor held = tensor(arena, 2 * kMiB);
    EXPECT_EQ(memory->statistics().reserved, 2 * kMiB);
}

TEST_F(MemoryFixture, ARepeatedStepCountsAsTheStepThatItRepeats) {
    const auto run = [&](bool repeat) {
        const auto memory = make(false, {.deviceBudget = 64 * kMiB});
        StepArena& arena = memory->step();
        arena.ensureCapacity(1 * kMiB);
        const Tensor before = tensor(memory->general(), 3000, MemoryCategory::Activations);
        const auto step = [&] {
            arena.beginStep();
            Tensor a = tensor(arena, 9000, MemoryCategory::Activations);
            Tensor b = tensor(arena, 5000, MemoryCategory::Logits);
            a.reset();
            const Tensor c = tensor(arena, 7000, MemoryCategory::Logits);
        };
        step();
        const StepMemory captured = memory->stepMemory();
        EXPECT_EQ(captured.allocations, 3U);
        EXPECT_EQ(captured.peak, 14000U);
        const Tensor grown = tensor(memory->general(), 4000, MemoryCategory::KvCache);
        if (repeat) {
            memory->repeatStep(captured);
        } else {
            step();
        }
        return memory->statistics();
    };
    const MemoryStatistics ran = run(false);
    const MemoryStatistics repeated = run(true);
    EXPECT_EQ(repeated.peak, ran.peak);
    EXPECT_EQ(repeated.peakByCategory, ran.peakByCategory);
    EXPECT_EQ(repeated.maxByCategory, ran.maxByCategory);
    EXPECT_EQ(repeated.current, ran.current);
    EXPECT_EQ(repeated.allocations, ran.allocations);
    EXPECT_EQ(repeated.frees, ran.frees);
}

TEST_F(MemoryFixture, StepArenaRunsOutBeforeTheStep) {
    const auto memory = make(true, {.deviceBudget = 8 * kMiB});
    EXPECT_THROW(memory->step().ensureCapacity(9 * kMiB), base::OutOfMemory);
    EXPECT_EQ(sink.all<base::OutOfMemoryEvent>().size(), 1U);
    EXPECT_NO_THROW(memory->step().ensureCapacity(8 * kMiB));
}

TEST_F(MemoryFixture, AFailureNamesTheArenaThatLiesIdle) {
    const auto memory = make(true, {.deviceBudget = 64 * kMiB});
    tracer.beginStep("prefill", 3, 100, false);
    memory->step().ensureCapacity(40 * kMiB);
    memory->step().beginStep();
    tracer.endStep();
    const Tensor used = tensor(memory->step(), 10 * kMiB);
    try {
        const Tensor big = tensor(memory->general(), 30 * kMiB);
        FAIL() << "30 MiB fitted beside 40 MiB";
    } catch (const base::OutOfMemory& error) {
        EXPECT_EQ(error.details().arena, "arena of the prefill step");
        EXPECT_EQ(error.details().arenaBytes, 40 * kMiB);
        EXPECT_EQ(error.details().arenaIdle, 30 * kMiB);
        EXPECT_EQ(error.details().largestFree, 24 * kMiB);
        EXPECT_NE(error.message().find("idle in the arena of the prefill step 30.0 MiB"), std::string::npos)
            << error.message();
        EXPECT_NE(error.message().find("use a smaller prefill chunk"), std::string::npos) << error.message();
        EXPECT_EQ(error.message().find("not in use"), std::string::npos) << error.message();
    }
    const auto failures = sink.all<base::OutOfMemoryEvent>();
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(sink.texts[failures[0].arena.value], "arena of the prefill step");
    EXPECT_EQ(failures[0].arenaBytes, 40 * kMiB);
    EXPECT_EQ(failures[0].arenaIdle, 30 * kMiB);
}

TEST_F(MemoryFixture, AStepArenaThatCannotGrowIsThereAgain) {
    const auto memory = make(true, {.deviceBudget = 8 * kMiB});
    StepArena& arena = memory->step();
    arena.ensureCapacity(3 * kMiB);
    EXPECT_THROW(arena.ensureCapacity(9 * kMiB), base::OutOfMemory);
    EXPECT_EQ(arena.capacity(), 3 * kMiB);
    EXPECT_EQ(memory->statistics().reserved, 3 * kMiB);
    const auto failures = sink.all<base::OutOfMemoryEvent>();
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(failures[0].reserved, 0U) << "the larger arena would have taken the place of this one";
    arena.beginStep();
    EXPECT_NO_THROW(tensor(arena, 2 * kMiB));
}

TEST_F(MemoryFixture, WeightsArenaIsReservedAtOnceAndFilledPieceByPiece) {
    const auto memory = make(true, {.deviceBudget = 64 * kMiB});
    const auto arena = memory->reserveArena(10 * kMiB, "weights");
    EXPECT_EQ(memory->statistics().reserved, 10 * kMiB);
    EXPECT_EQ(memory->statistics().current, 0U);
    const Tensor w = tensor(*arena, 6 * kMiB, MemoryCategory::Weights);
    EXPECT_EQ(memory->statistics().current, 6 * kMiB);
    EXPECT_THROW(tensor(*arena, 5 * kMiB), base::Internal);
    EXPECT_THROW(memory->reserveArena(60 * kMiB, "weights"), base::OutOfMemory);
}

TEST_F(MemoryFixture, AnArenaGoesFromOneMemoryToTheNext) {
    KeptReservation block;
    {
        const auto first = make(false, {});
        auto arena = first->reserveArena(3 * kMiB, "weights");
        {
            const Tensor written = tensor(*arena, kMiB, MemoryCategory::Weights);
            std::memset(written.view().data, 0x5A, kMiB);
        }
        block = first->detachArena(std::move(arena));
        EXPECT_EQ(first->statistics().reserved, 0U);
    }
    ASSERT_EQ(block.bytes(), 3 * kMiB);
    const auto tight = make(false, {.deviceBudget = 2 * kMiB});
    EXPECT_THROW(tight->adoptArena(block, "weights"), base::OutOfMemory);
    EXPECT_EQ(block.bytes(), 3 * kMiB) << "what does not fit stays whose it was";
    const auto second = make(false, {.deviceBudget = 4 * kMiB});
    auto arena = second->adoptArena(block, "weights");
    EXPECT_TRUE(block.empty());
    EXPECT_EQ(second->statistics().reserved, 3 * kMiB);
    {
        const Tensor read = tensor(*arena, kMiB, MemoryCategory::Weights);
        EXPECT_EQ(static_cast<const std::uint8_t*>(read.view().data)[kMiB - 1], 0x5A);
        EXPECT_EQ(second->statistics().currentByCategory[static_cast<std::size_t>(MemoryCategory::Weights)], kMiB);
        EXPECT_THROW(tensor(second->general(), 2 * kMiB), base::OutOfMemory);
    }
    block = second->detachArena(std::move(arena));
    EXPECT_EQ(block.bytes(), 3 * kMiB);
    arena = second->reserveArena(4 * kMiB, "weights");
    EXPECT_EQ(second->statistics().reserved, 4 * kMiB);
}

TEST_F(MemoryFixture, GuardBytesSeeWritesOutside) {
    const auto memory = make(false, {.deviceBudget = 64 * kMiB, .guardBytes = true});
    {
        const Tensor fine = tensor(memory->general(), 100);
        fine.view().as<unsigned char>()[99] = 1;
    }
    EXPECT_EQ(memory->guardViolations(), 0U);
    {
        const Tensor bad = tensor(memory->general(), 100);
        bad.view().as<unsigned char>()[100] = 1;
    }
    EXPECT_EQ(memory->guardViolations(), 1U);
}

TEST_F(MemoryFixture, ReservationsFailFromTheOneThatATestNames) {
    for (std::uint64_t from = 1; from < 4; ++from) {
        const auto memory = make(false, {.failFrom = from});
        std::vector<Tensor> live;
        try {
            for (std::uint64_t i = 1; i < 4; ++i) {
                live.push_back(tensor(memory->general(), 4 * kMiB)); // each a segment of its own
                EXPECT_LT(i, from);
            }
            FAIL();
        } catch (const base::OutOfMemory& error) {
            EXPECT_EQ(error.details().requested, 4 * kMiB);
            EXPECT_EQ(error.details().held, (from - 1) * 4 * kMiB);
        }
    }
}

TEST_F(MemoryFixture, GuardBytesGoThroughTheAccessGiven) {
    int fills = 0;
    int reads = 0;
    MemoryOptions options;
    options.guardBytes = true;
    options.guardAccess.fill = [&](void* address, std::uint8_t value, std::uint64_t bytes) {
        ++fills;
        std::memset(address, value, bytes);
    };
    options.guardAccess.read = [&](const void* address, void* host, std::uint64_t bytes) {
        ++reads;
        std::memcpy(host, address, bytes);
    };
    const auto memory = make(false, options);
    EXPECT_TRUE(memory->guarded());
    {
        const Tensor good = tensor(memory->general(), 100);
    }
    EXPECT_EQ(fills, 1);
    EXPECT_EQ(reads, 2);
    EXPECT_EQ(memory->guardViolations(), 0U);
}

TEST(MetaResource, NoTwoResourcesShareAddresses) {
    const auto first = makeMetaResource(base::MemorySpace::Device);
    const auto second = makeMetaResource(base::MemorySpace::Device);
    const Tag tag;
    constexpr std::uint64_t kLarge = std::uint64_t{1} << 40;
    const auto a = reinterpret_cast<std::uintptr_t>(first->allocate(kLarge, {}, tag));
    const auto b = reinterpret_cast<std::uintptr_t>(second->allocate(kLarge, {}, tag));
    EXPECT_TRUE(a + kLarge <= b || b + kLarge <= a);
}

TEST(LayerOfName, ReadsTheNumber) {
    EXPECT_EQ(layerOfName("model.layers.17.mlp.down_proj.weight"), 17);
    EXPECT_EQ(layerOfName("model.layers.x"), -1);
    EXPECT_EQ(layerOfName("lm_head.weight"), -1);
}

} // namespace
} // namespace vitrine::kernels
