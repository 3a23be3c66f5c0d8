// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/kv_swap.h"

#include <cstring>
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/context/meta_context.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

/// A pool of two groups, 12 pages of the full layers and 6 sequences' rings.
class SwapRig {
public:
    explicit SwapRig(kernels::Backend backend) : context(test::makeContext(backend)) {
        ModelConfig config;
        config.kvHeads = 2;
        config.headDim = 64;
        config.layers = {{9, false}, {0, false}, {9, false}, {0, false}, {0, false}};
        KvCacheOptions options;
        options.kind = KvCacheKind::Paged;
        options.pageTokens = 4;
        options.poolPages = 12;
        options.poolSequences = 6;
        cache = std::make_unique<KvCache>(*context, config, options);
    }

    int sequence(std::int64_t tokens, std::uint64_t seed) {
        const int number = cache->addSequence();
        cache->fillRandom(number, tokens, seed);
        return number;
    }
    Lists listsOf(int sequence) const {
        Lists lists;
        for (int group = 0; group < 2; ++group) {
            const auto pages = cache->book()->pages(sequence, group);
            lists.emplace_back(pages.begin(), pages.end());
        }
        return lists;
    }
    std::vector<std::byte> contents(const Lists& lists) {
        std::vector<std::byte> out;
        for (std::size_t group = 0; group < lists.size(); ++group) {
            for (const std::int32_t page : lists[group]) {
                const std::byte* data = cache->pageData(static_cast<int>(group), page);
                out.insert(out.end(), data, data + cache->groups()[group].pageBytes);
            }
        }
        return out;
    }
    std::uint64_t place() const { return std::max(cache->groups()[0].pageBytes, cache->groups()[1].pageBytes); }
    /// Nanoseconds that the pages take to the host or back, and within the device: each byte is read and written there.
    struct Times {
        base::TimeNs onHost, inside;
    };
    Times times(const Lists& lists) const {
        double bytes = 0;
        for (std::size_t group = 0; group < lists.size(); ++group) {
            bytes += static_cast<double>(lists[group].size() * cache->groups()[group].pageBytes);
        }
        const auto nanoseconds = [](double seconds) { return static_cast<base::TimeNs>(seconds * 1e9); };
        const kernels::DeviceTraits& traits = context->traits();
        return {nanoseconds(bytes / traits.hostToDeviceBandwidth), nanoseconds(2 * bytes / traits.memoryBandwidth)};
    }
    static std::size_t count(const Lists& lists) { return lists[0].size() + lists[1].size(); }

    std::unique_ptr<kernels::Context> context;
    std::unique_ptr<KvCache> cache;
};

TEST(KvSwap, PagesGoToTheHostAndComeBackElsewhere) {
    // The second fits two pages at a time: pieces take the halves of the staging buffer in turns.
    for (const std::uint64_t pagesOfHalf : {100U, 2U, 1U}) {
        SwapRig rig(kernels::Backend::Cpu);
        KvSwap swap(*rig.context, *rig.cache, 30, pagesOfHalf * rig.place());
        const int a = rig.sequence(14, 3);
        const int b = rig.sequence(9, 4);
        const Lists before = rig.listsOf(a);
        const auto first = rig.contents(before);
        const auto second = rig.contents(rig.listsOf(b));
        swap.out(0, before);
        swap.out(1, rig.listsOf(b));
        EXPECT_EQ(swap.heldPages(), static_cast<std::int64_t>(SwapRig::count(before) + 5));
        rig.cache->removeSequence(a);
        rig.cache->removeSequence(b);
        const int other = rig.sequence(20, 5); // takes the pages that both had
        const auto third = rig.contents(rig.listsOf(other));
        const int again = rig.cache->addSequence();
        const KvAppend room{again, 14};
        rig.cache->reserve({&room, 1});
        swap.in(0, rig.listsOf(again));
        EXPECT_NE(rig.listsOf(again), before);
        EXPECT_EQ(rig.contents(rig.listsOf(again)), first);
        EXPECT_EQ(rig.contents(rig.listsOf(other)), third);
        swap.out(2, rig.listsOf(other)); // into places that were read just now
        rig.cache->removeSequence(other);
        const int last = rig.cache->addSequence();
        const KvAppend less{last, 9};
        rig.cache->reserve({&less, 1});
        swap.in(1, rig.listsOf(last));
        EXPECT_EQ(rig.contents(rig.listsOf(last)), second);
        swap.drop(2);
        swap.drop(2);
        EXPECT_EQ(swap.heldPages(), 0);
    }
}

TEST(KvSwap, HostMemoryIsBoundedAndUsedAgain) {
    SwapRig rig(kernels::Backend::Cpu);
    KvSwap swap(*rig.context, *rig.cache, 12);
    EXPECT_EQ(swap.hostBytes(), 12 * rig.place()) << "no larger than what may be held";
    EXPECT_EQ(rig.context->memory().hostStatistics().current, swap.hostBytes());
    const Lists lists = rig.listsOf(rig.sequence(14, 3));
    for (std::int32_t round = 0; round < 5; ++round) {
        swap.out(round, lists);
        swap.out(100 + round, lists);
        EXPECT_EQ(swap.heldPages(), 12);
        EXPECT_THROW(swap.out(7000, lists), base::Internal);
        swap.drop(round);
        swap.in(100 + round, lists);
    }
    EXPECT_EQ(swap.mostPages(), 12);
    EXPECT_EQ(rig.context->memory().hostStatistics().current, 12 * rig.place());
    EXPECT_EQ(KvSwap(*rig.context, *rig.cache, 0).hostBytes(), 0U);
}

TEST(KvSwap, StepsDoNotWaitForWhatGoesOut) {
    SwapRig rig(kernels::Backend::Meta);
    KvSwap swap(*rig.context, *rig.cache, 100);
    kernels::MetaContext& meta = *rig.context->meta();
    const Lists lists = rig.listsOf(rig.sequence(14, 3));
    const auto [onHost, inside] = rig.times(lists);
    base::TimeNs begin = meta.opsEnd();
    swap.out(0, lists);
    swap.out(1, lists);
    EXPECT_NEAR(static_cast<double>(meta.opsEnd() - begin), static_cast<double>(2 * inside), 30)
        << "the ops only copy into the staging buffers";
    begin = meta.opsEnd();
    swap.out(2, lists);
    EXPECT_GE(meta.opsEnd() - begin, onHost - 2 * inside) << "both halves are under way: the first is waited for";

    // What comes back is waited for, but only that.
    SwapRig fresh(kernels::Backend::Meta);
    KvSwap other(*fresh.context, *fresh.cache, 100);
    kernels::MetaContext& clock = *fresh.context->meta();
    const Lists pages = fresh.listsOf(fresh.sequence(14, 3));
    other.out(0, pages);
    clock.addCompute(1);
    begin = clock.opsEnd();
    other.in(0, pages);
    EXPECT_NEAR(static_cast<double>(clock.opsEnd() - begin), static_cast<double>(onHost + inside), 30);
    clock.addCompute(1);
    other.out(1, pages);
    begin = clock.opsEnd();
    other.in(1, pages);
    EXPECT_GE(clock.opsEnd() - begin, 2 * onHost) << "it was still on its way out";
}

TEST(KvSwap, WhatTheHostAskedForEarlierLiesBesideTheStep) {
    SwapRig rig(kernels::Backend::Meta);
    KvSwap swap(*rig.context, *rig.cache, 100);
    kernels::MetaContext& meta = *rig.context->meta();
    const Lists lists = rig.listsOf(rig.sequence(14, 3));
    swap.out(0, lists);
    meta.addCompute(1); // it is on the host by now
    const base::TimeNs launched = meta.opsEnd();
    meta.addCompute(1);
    swap.askedAt(launched);
    const base::TimeNs begin = meta.opsEnd();
    swap.in(0, lists);
    EXPECT_NEAR(static_cast<double>(meta.opsEnd() - begin), static_cast<double>(rig.times(lists).inside), 30)
        << "fetched while the step ran";
}

/// A pool of 20 pages of 64 tokens in float32, of a model with `heads` layers of as many heads, beside a host with a
/// budget.
struct SmallHost {
    std::unique_ptr<kernels::Context> context;
    std::unique_ptr<KvCache> cache;

    SmallHost(std::uint64_t budget, int heads, int headDim) {
        kernels::ContextOptions options;
        options.backend = kernels::Backend::Meta;
        options.traits = test::testTraits();
        options.memory.hostBudget = budget;
        context = std::make_unique<kernels::Context>(options);
        ModelConfig config;
        config.kvHeads = heads;
        config.headDim = headDim;
        config.layers.assign(static_cast<std::size_t>(heads), {0, false});
        KvCacheOptions pool;
        pool.kind = KvCacheKind::Paged;
        pool.dtype = kernels::DType::F32;
        pool.pageTokens = 64;
        pool.poolPages = 20;
        pool.poolSequences = 4;
        cache = std::make_unique<KvCache>(*context, config, pool);
    }
};

TEST(KvSwap, WithoutHostMemoryNothingIsTaken) {
    const SmallHost host(std::uint64_t{39} << 20, 8, 256);
    ASSERT_EQ(host.cache->groups()[0].pageBytes, std::uint64_t{8} << 20) << "four fit the first slab";
    KvSwap swap(*host.context, *host.cache, 12);
    const Lists three{{0, 1, 2}}, two{{3, 4}}, one{{5}};
    swap.out(0, three);
    EXPECT_THROW(swap.out(1, two), base::OutOfMemory);
    EXPECT_EQ(swap.heldPages(), 3);
    EXPECT_NO_THROW(swap.out(2, one));
    swap.in(0, three);
    EXPECT_NO_THROW(swap.out(1, two));
    EXPECT_EQ(swap.heldPages(), 3);
}

TEST(KvSwap, ASmallHostBudgetIsUsedAsFarAsItGoes) {
    for (const std::uint64_t pages : {0, 1, 3}) {
        const SmallHost host(pages * 4096 + 100, 1, 8);
        ASSERT_EQ(host.cache->groups()[0].pageBytes, 4096U);
        KvSwap swap(*host.context, *host.cache, 12);
        EXPECT_EQ(swap.hostBytes(), pages * 4096);
        for (std::int32_t page = 0; page < static_cast<std::int32_t>(pages); ++page) {
            EXPECT_NO_THROW(swap.out(page, Lists{{page}}));
        }
        EXPECT_THROW(swap.out(9, Lists{{9}}), base::OutOfMemory);
    }
}

TEST(PagedKvCache, CopiedPagesAreEqual) {
    SwapRig rig(kernels::Backend::Cpu);
    const Lists lists = rig.listsOf(rig.sequence(14, 3));
    const auto page = [&](std::size_t index) { return rig.contents({{}, {lists[1][index]}}); };
    EXPECT_NE(page(0), page(1));
    rig.cache->copyPage({1, lists[1][0], lists[1][1]});
    EXPECT_EQ(page(0), page(1));
    EXPECT_NE(page(0), page(2));
}

} // namespace
} // namespace vitrine::engine
