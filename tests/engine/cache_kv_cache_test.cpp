// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/cache/kv_cache.h"
#include "tests/engine/model_test_support.h"

namespace vitrine::engine {
namespace {

ModelConfig twoGroups() {
    ModelConfig config;
    config.kvHeads = 2;
    config.headDim = 4;
    config.layers = {{9, false}, {0, false}, {9, false}, {0, false}, {0, false}};
    return config;
}

constexpr std::uint64_t kLayerToken = 2 * 2 * 4 * 2; ///< keys and values of one token of one layer in BF16

KvCacheOptions pagesOf(std::int64_t tokens) {
    KvCacheOptions options;
    options.pageTokens = tokens;
    return options;
}

void append(KvCache& cache, int sequence, std::int64_t tokens) {
    const KvAppend item{sequence, tokens};
    cache.reserve({&item, 1});
    cache.commit({&item, 1});
}

TEST(KvCache, FullLayersGrowAndSlidingLayersStop) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    KvCache cache(*context, twoGroups(), pagesOf(4));
    ASSERT_EQ(cache.groups().size(), 2U);
    EXPECT_EQ(cache.groups()[0].name, "sliding");
    EXPECT_EQ(cache.groups()[0].layers, (std::vector<int>{0, 2}));
    const int sequence = cache.addSequence();
    EXPECT_EQ(cache.bytes(), 0U);
    for (std::int64_t tokens = 1; tokens <= 40; ++tokens) {
        append(cache, sequence, 1);
        EXPECT_EQ(cache.bytes(1), kLayerToken * 3 * 4 * static_cast<std::uint64_t>((tokens + 3) / 4));
        EXPECT_EQ(cache.bytes(0),
                  kLayerToken * 2 * 4 * static_cast<std::uint64_t>(std::min<std::int64_t>((tokens + 3) / 4, 2)));
        EXPECT_EQ(cache.usedBytes(),
                  kLayerToken * static_cast<std::uint64_t>(3 * tokens + 2 * std::min<std::int64_t>(tokens, 8)));
    }
    const auto& statistics = context->memory().statistics();
    EXPECT_EQ(statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)], cache.bytes());
    cache.removeSequence(sequence);
    EXPECT_EQ(statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)], 0U);
}

TEST(KvCache, WithoutSlidingEveryLayerIsFull) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    KvCacheOptions options = pagesOf(4);
    options.slidingSaves = false;
    KvCache cache(*context, twoGroups(), options);
    ASSERT_EQ(cache.groups().size(), 1U);
    append(cache, cache.addSequence(), 40);
    EXPECT_EQ(cache.bytes(), kLayerToken * 5 * 40);
}

TEST(KvCache, StaticReservesEverythingAtOnce) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    KvCacheOptions options;
    options.kind = KvCacheKind::Static;
    options.maxTokens = 100;
    KvCache cache(*context, twoGroups(), options);
    const int sequence = cache.addSequence();
    EXPECT_EQ(cache.bytes(), kLayerToken * (3 * 100 + 2 * 8));
    append(cache, sequence, 100);
    EXPECT_EQ(cache.bytes(), kLayerToken * (3 * 100 + 2 * 8));
    const KvAppend more{sequence, 1};
    EXPECT_THROW(cache.reserve({&more, 1}), base::BadInput);
}

TEST(KvCache, TablesNamePagesAndWhatIsVisible) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    KvCache cache(*context, twoGroups(), pagesOf(4));
    const int a = cache.addSequence();
    const int b = cache.addSequence();
    append(cache, a, 10);
    const KvAppend items[] = {{a, 3}, {b, 2}};
    cache.reserve(items);
    const KvTables full = cache.tables(1, items);
    EXPECT_EQ(full.columns, 4);
    EXPECT_EQ(std::count(full.pages.begin(), full.pages.end(), -1), 3) << "b has one page";
    EXPECT_EQ(full.lengths, (std::vector<std::int32_t>{13, 2}));
    EXPECT_EQ(full.totalTokens, 15);
    std::vector<std::int32_t> used;
    std::copy_if(full.pages.begin(), full.pages.end(), std::back_inserter(used),
                 [](std::int32_t page) { return page >= 0; });
    std::sort(used.begin(), used.end());
    EXPECT_EQ(std::unique(used.begin(), used.end()), used.end()) << "no page is given out twice";
    EXPECT_EQ(used.front(), 0);

    const KvTables ring = cache.tables(0, items);
    EXPECT_EQ(ring.columns, 2);
    EXPECT_EQ(ring.first, (std::vector<std::int32_t>{2, 0})) << "8 older tokens of a";
    EXPECT_EQ(ring.lengths, (std::vector<std::int32_t>{8, 0}));
    EXPECT_EQ(ring.firstAfter, (std::vector<std::int32_t>{5, 0}));
    EXPECT_EQ(ring.lengthsAfter, (std::vector<std::int32_t>{8, 2}));
}

TEST(KvCache, TrimGivesPagesBackButNotARing) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    KvCache cache(*context, twoGroups(), pagesOf(4));
    const int sequence = cache.addSequence();
    append(cache, sequence, 8);
    cache.trim(sequence, 3);
    EXPECT_EQ(cache.length(sequence), 3);
    EXPECT_EQ(cache.bytes(), kLayerToken * (3 + 2) * 4);
    append(cache, sequence, 9);
    EXPECT_THROW(cache.trim(sequence, 11), base::Unsupported);
}

TEST(KvCache, OutOfMemoryIsTypedAndNamesTheCache) {
    kernels::ContextOptions options;
    options.backend = kernels::Backend::Meta;
    options.traits = test::testTraits();
    options.memory.deviceBudget = options.traits.untrackedBytes + (std::uint64_t{4} << 20);
    kernels::Context context(options);
    KvCache cache(context, twoGroups(), pagesOf(1024));
    const int sequence = cache.addSequence();
    try {
        append(cache, sequence, 1'000'000);
        FAIL() << "100 MiB fitted into 4";
    } catch (const base::OutOfMemory& error) {
        EXPECT_EQ(error.facts().what, "kv_cache.full");
        ASSERT_FALSE(error.facts().holders.empty());
    }
}

TEST(KvCache, CountersFollow) {
    test::RecordingSink sink;
    const auto context = test::makeContext(kernels::Backend::Meta, &sink);
    KvCache cache(*context, twoGroups(), pagesOf(4));
    append(cache, cache.addSequence(), 5);
    const auto& counters = sink.counters();
    const auto has = [&](const char* name, double value) {
        return std::find(counters.begin(), counters.end(), std::pair<std::string, double>(name, value)) !=
               counters.end();
    };
    EXPECT_TRUE(has("kv_tokens", 5));
    EXPECT_TRUE(has("kv_bytes.full", static_cast<double>(kLayerToken * 3 * 8)));
    EXPECT_TRUE(has("kv_bytes.sliding", static_cast<double>(kLayerToken * 2 * 8)));
}

} // namespace
} // namespace vitrine::engine
