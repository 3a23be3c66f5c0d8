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

KvCacheOptions poolOf(std::int64_t pageTokens, std::int64_t pages, std::int64_t sequences) {
    KvCacheOptions options = pagesOf(pageTokens);
    options.kind = KvCacheKind::Paged;
    options.poolPages = pages;
    options.poolSequences = sequences;
    return options;
}

TEST(PagedKvCache, ThePoolIsWhatItsFormulaSaysForEveryFamily) {
    for (const char* family : {"gpt-oss", "llama", "mistral", "qwen2", "qwen3", "qwen3-moe", "gemma2"}) {
        const ModelConfig config = openModel(std::string("synthetic:tiny-") + family).config;
        for (const kernels::DType dtype :
             {kernels::DType::BF16, kernels::DType::F32, kernels::DType::F8E4M3, kernels::DType::I8}) {
            for (const bool slides : {true, false}) {
                const auto context = test::makeContext(kernels::Backend::Meta);
                KvCacheOptions options = poolOf(0, 13, 3);
                options.dtype = dtype;
                options.slidingSaves = slides;
                const std::uint64_t predicted = kvPoolBytes(kvGroups(config, options), options);
                KvCache cache(*context, config, options);
                const auto& statistics = context->memory().statistics();
                EXPECT_EQ(statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)],
                          predicted)
                    << family;
                EXPECT_EQ(cache.poolBytes(), predicted);
                const int sequence = cache.addSequence();
                append(cache, sequence, 70);
                EXPECT_EQ(cache.usedBytes(), config.kvBytes(70, dtype, slides));
                EXPECT_EQ(statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)],
                          predicted)
                    << "pages change hands without an allocation";
            }
        }
    }
}

TEST(KvCache, BytesAreWhatTheFormulaSaysForEveryFamilyTypeAndKind) {
    for (const char* family : {"gpt-oss", "llama", "mistral", "qwen2", "qwen3", "qwen3-moe", "gemma2"}) {
        const ModelConfig config = openModel(std::string("synthetic:tiny-") + family).config;
        for (const kernels::DType dtype :
             {kernels::DType::BF16, kernels::DType::F32, kernels::DType::F8E4M3, kernels::DType::I8}) {
            for (const KvCacheKind kind : {KvCacheKind::Dynamic, KvCacheKind::Static}) {
                SCOPED_TRACE(family);
                const auto context = test::makeContext(kernels::Backend::Meta);
                KvCacheOptions options = pagesOf(1); // no rest of a last page
                options.kind = kind;
                options.dtype = dtype;
                options.maxTokens = 70;
                KvCache cache(*context, config, options);
                append(cache, cache.addSequence(), 70);
                // Alone of what pages round up to: scales begin at multiples of 16 bytes.
                std::uint64_t paddings = 0;
                for (const KvGroup& group : cache.groups()) {
                    const std::int64_t kept = group.ring() ? std::min<std::int64_t>(70, group.window - 1) : 70;
                    const auto pages = static_cast<std::uint64_t>(kept / group.pageTokens);
                    const std::uint64_t tokens = group.tokenBytes * static_cast<std::uint64_t>(group.pageTokens);
                    EXPECT_LT(group.pageBytes - tokens, 16U);
                    paddings += pages * (group.pageBytes - tokens);
                }
                EXPECT_EQ(cache.usedBytes(), config.kvBytes(70, dtype));
                EXPECT_EQ(cache.bytes(), config.kvBytes(70, dtype) + paddings);
                EXPECT_TRUE(config.headDim % 16 != 0 || paddings == 0);
                const auto& statistics = context->memory().statistics();
                EXPECT_EQ(statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)],
                          cache.bytes());
            }
        }
    }
}

/// Bytes of the whole cache at the longest context that gpt-oss-20b was made for, by allocation.
TEST(PagedKvCache, SlidingLayersHalveTheCacheOfGptOss) {
    const ModelConfig config = openModel("synthetic:gpt-oss-20b").config;
    const auto bytesOf = [&](bool slides, kernels::DType dtype = kernels::DType::BF16) {
        const auto context = test::makeContext(kernels::Backend::Meta);
        KvCacheOptions options = poolOf(64, 131'072 / 64, 1);
        options.dtype = dtype;
        options.slidingSaves = slides;
        KvCache cache(*context, config, options);
        append(cache, cache.addSequence(), 131'072);
        return static_cast<double>(cache.poolBytes()) / (std::uint64_t{1} << 30);
    };
    EXPECT_NEAR(bytesOf(true), 3.003, 0.001);
    EXPECT_EQ(bytesOf(false), 6);
    for (const kernels::DType dtype : {kernels::DType::F8E4M3, kernels::DType::I8}) {
        constexpr double kRow = 68.0 / 128; // a scale for each 64 elements
        EXPECT_NEAR(bytesOf(true, dtype), 3.003 * kRow, 0.001);
        EXPECT_EQ(bytesOf(false, dtype), 6 * kRow);
    }
}

TEST(PagedKvCache, AnEmptyPoolIsOutOfMemoryWithItsFacts) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    KvCache cache(*context, twoGroups(), poolOf(4, 3, 1));
    const int sequence = cache.addSequence();
    append(cache, sequence, 12);
    const KvAppend more{sequence, 1};
    try {
        cache.reserve({&more, 1});
        FAIL() << "the pool had three pages";
    } catch (const base::OutOfMemory& error) {
        EXPECT_EQ(error.facts().what, "kv_cache.full");
        EXPECT_EQ(error.facts().largestFree, 0U);
    }
    EXPECT_EQ(cache.length(sequence), 12);
    cache.trim(sequence, 12);
    cache.removeSequence(sequence);
    append(cache, cache.addSequence(), 5);
}

TEST(PagedKvCache, RowsThatDoNotCountLeaveNoTokens) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    KvCache cache(*context, twoGroups(), poolOf(4, 3, 2));
    const int fill = cache.addSequence();
    const KvAppend rows[] = {{fill, 1, false}, {fill, 1, false}};
    cache.reserve(rows);
    EXPECT_EQ(cache.tables(1, rows).lengths, (std::vector<std::int32_t>{1, 1}));
    cache.commit(rows);
    EXPECT_EQ(cache.length(fill), 0);
}

} // namespace
} // namespace vitrine::engine
