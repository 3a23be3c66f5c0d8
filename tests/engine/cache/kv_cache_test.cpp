// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/kv_cache.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "base/error.h"
#include "tests/engine/model/model_test_support.h"

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

TEST(KvCache, LatentsAreStoredOnce) {
    ModelConfig config = openModel("synthetic:kimi-k2").config;
    EXPECT_EQ(config.kvBytes(1, kernels::DType::BF16), 61U * 576 * 2);
    EXPECT_EQ(config.kvBytes(1, kernels::DType::F8E4M3), 61U * (576 + 4));
    const auto context = test::makeContext(kernels::Backend::Meta);
    for (const kernels::DType dtype : {kernels::DType::BF16, kernels::DType::I8}) {
        KvCacheOptions options = pagesOf(64);
        options.dtype = dtype;
        KvCache cache(*context, config, options);
        append(cache, cache.addSequence(), 64);
        EXPECT_EQ(cache.bytes(), config.kvBytes(64, dtype));
        for (const int layer : {0, 60}) {
            const kernels::KvView view = cache.layerView(layer);
            EXPECT_TRUE(view.valuesAreKeys());
            EXPECT_EQ(view.valueScales.data, view.keyScales.data);
        }
        // One layer's rows end where those of the next begin.
        const auto* first = static_cast<const std::byte*>(cache.layerView(0).keys.data);
        const auto* second = static_cast<const std::byte*>(cache.layerView(1).keys.data);
        EXPECT_EQ(static_cast<std::uint64_t>(second - first), 64 * kernels::bytesOf(dtype, 576));
    }
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

TEST(KvCache, AFullRingGoesBackByWhatItKeepsForThat) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    KvCacheOptions options = pagesOf(4);
    options.rollBackTokens = 3;
    KvCache cache(*context, twoGroups(), options);
    const int sequence = cache.addSequence();
    for (int step = 0; step < 40; ++step) {
        append(cache, sequence, 4);
        cache.trim(sequence, cache.length(sequence) - 3);
    }
    EXPECT_EQ(cache.length(sequence), 40);
    EXPECT_THROW(cache.trim(sequence, 39), base::Unsupported) << "the places of older tokens are taken";
    append(cache, sequence, 3);
    EXPECT_NO_THROW(cache.trim(sequence, 42));
    EXPECT_THROW(cache.trim(sequence, 39), base::Unsupported);
    for (const KvGroup& group : cache.groups()) {
        EXPECT_GE(group.ringPages * group.pageTokens, group.ring() ? group.window - 1 + 3 : 0);
    }
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
        EXPECT_EQ(error.details().what, "kv_cache.full");
        ASSERT_FALSE(error.details().holders.empty());
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
                const auto& held =
                    statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)];
                EXPECT_EQ(held, 0U) << "a pool starts with what is needed";
                const int sequence = cache.addSequence();
                append(cache, sequence, 70);
                EXPECT_EQ(cache.usedBytes(), config.kvBytes(70, dtype, slides));
                EXPECT_EQ(held, predicted) << family << ": a small pool is made at once";
                EXPECT_EQ(cache.poolBytes(), predicted);
                cache.removeSequence(sequence);
                append(cache, cache.addSequence(), 30);
                EXPECT_EQ(held, predicted) << "pages change hands without an allocation";
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
TEST(PagedKvCache, PoolsGiveTheirMemoryBackAndGrowAgain) {
    for (const kernels::Backend backend : {kernels::Backend::Cpu, kernels::Backend::Meta}) {
        const ModelConfig config = openModel("synthetic:tiny-gpt-oss").config;
        const auto context = test::makeContext(backend);
        KvCacheOptions options = poolOf(16, 4096, 4);
        options.sharePrefixes = true;
        options.aheadBytes = 0;
        KvCache cache(*context, config, options);
        const auto& statistics = context->memory().statistics();
        const std::uint64_t before = statistics.reserved;
        std::vector<std::int32_t> prompt(1024);
        std::mt19937 random{std::random_device()()};
        std::generate(prompt.begin(), prompt.end(), [&random] { return static_cast<std::int32_t>(random() % 99); });
        const int first = cache.addSequence();
        append(cache, first, 1024);
        cache.book()->publish(first, prompt);
        EXPECT_EQ(cache.book()->knownPrefix(prompt), 1024);
        cache.forgetPrefixes();
        EXPECT_EQ(cache.book()->knownPrefix(prompt), 0);
        const int second = cache.addSequence();
        append(cache, second, 20'000);
        const std::uint64_t both = cache.poolBytes();
        cache.removeSequence(second);
        cache.giveBack();
        EXPECT_LT(cache.poolBytes(), both) << "only what the first sequence holds stays";
        EXPECT_GE(cache.poolBytes(), cache.bytes());
        EXPECT_EQ(cache.length(first), 1024);
        cache.removeSequence(first);
        cache.giveBack();
        EXPECT_EQ(cache.poolBytes(), 0U);
        EXPECT_EQ(statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)], 0U);
        EXPECT_EQ(statistics.reserved, before);
        const int again = cache.addSequence();
        EXPECT_EQ(cache.book()->adoptPrefix(again, prompt), 0) << "what the pages held is forgotten";
        append(cache, again, 21'024);
        EXPECT_GE(cache.poolBytes(), cache.bytes());
        EXPECT_GT(statistics.reserved, before);
    }
}

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

/// Bytes of addresses that steps read: they must never change.
std::vector<const void*> addressesOf(const KvCache& cache) {
    std::vector<const void*> out;
    for (const KvGroup& group : cache.groups()) {
        out.push_back(cache.layerView(group.layers.front()).keys.data);
    }
    return out;
}

TEST(PagedKvCache, APoolGrowsWhereItLiesAheadOfNeed) {
    const ModelConfig config = openModel("synthetic:gpt-oss-20b").config;
    test::RecordingSink sink;
    const auto context = test::makeContext(kernels::Backend::Meta, &sink);
    KvCache cache(*context, config, poolOf(64, 131'072 / 64, 2));
    const std::uint64_t limit = kvPoolBytes(cache.groups(), cache.options());
    const auto& statistics = context->memory().statistics();
    const std::uint64_t before = statistics.reserved;
    const std::vector<const void*> addresses = addressesOf(cache);
    EXPECT_EQ(cache.poolBytes(), 0U);
    const int sequence = cache.addSequence();
    std::uint64_t last = 0;
    int growths = 0;
    for (std::int64_t tokens = 0; tokens < 20'000; tokens += 100) {
        append(cache, sequence, 100);
        ASSERT_GE(cache.poolBytes(), cache.bytes());
        ASSERT_LE(cache.poolBytes(), std::min(limit, cache.bytes() + (std::uint64_t{70} << 20)));
        ASSERT_EQ(addressesOf(cache), addresses);
        growths += cache.poolBytes() != last ? 1 : 0;
        last = cache.poolBytes();
        ASSERT_EQ(statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)], last);
        const PageCounts pages = cache.book()->counts();
        ASSERT_EQ(pages.used + pages.cached + pages.free + pages.unbacked, 131'072 / 64 + 2 * 2);
        ASSERT_EQ(pages.used + pages.cached + pages.free, cache.backedPages(0) + cache.backedPages(1));
        ASSERT_LE(statistics.reserved - before, last + (std::uint64_t{4} << 20)) << "whole units of each group";
    }
    EXPECT_GT(growths, 10);
    EXPECT_LT(growths, 20);
    const auto& counters = sink.counters();
    const auto timesReported = [&](const char* name) {
        return std::count_if(counters.begin(), counters.end(), [&](const auto& item) { return item.first == name; });
    };
    EXPECT_EQ(timesReported("kv_pool_limit_bytes"), 1);
    EXPECT_EQ(timesReported("kv_pool_bytes"), growths);
    cache.removeSequence(sequence);
    EXPECT_EQ(cache.poolBytes(), last) << "a pool keeps what it has";
}

TEST(PagedKvCache, MemoryAheadIsHadOrNot) {
    const ModelConfig config = openModel("synthetic:gpt-oss-20b").config;
    kernels::ContextOptions options;
    options.backend = kernels::Backend::Meta;
    options.traits = test::testTraits();
    options.memory.deviceBudget = options.traits.untrackedBytes + (std::uint64_t{101} << 20);
    kernels::Context context(options);
    KvCache cache(context, config, poolOf(64, 100'000, 1));
    const int full = cache.groupOf(1);
    EXPECT_TRUE(cache.backAhead(full, 20));
    EXPECT_EQ(cache.backedPages(full), 38 * 2 / 3) << "1.5 MiB each, and a sixteenth of 101 MiB ahead, in units of 2";
    EXPECT_FALSE(cache.backAhead(full, 1000));
    EXPECT_EQ(cache.backedPages(full), 66) << "100 MiB in units of 2";
    EXPECT_FALSE(cache.backAhead(full, 1000));
    cache.book()->limit(full, cache.backedPages(full));
    EXPECT_TRUE(cache.backAhead(full, 1000)) << "the pool has no more pages";
    EXPECT_FALSE(cache.book()->couldHold(67 * 64));
    const KvAppend all{cache.addSequence(), 66 * 64};
    EXPECT_TRUE(cache.book()->canGrow(all.sequence, all.tokens));
    EXPECT_THROW(cache.reserve({&all, 1}), base::OutOfMemory) << "the sliding layers have no memory";
}

TEST(KvCache, GrowsWhereItLiesAndGivesBackWhatLiesAfter) {
    for (const KvCacheKind kind : {KvCacheKind::Dynamic, KvCacheKind::Static}) {
        for (const kernels::Backend backend : {kernels::Backend::Meta, kernels::Backend::Cpu}) {
            const kernels::DeviceTraits traits = test::testTraits();
            const auto context = test::makeContext(backend, nullptr, &traits);
            KvCacheOptions options = pagesOf(4096);
            options.kind = kind;
            options.maxTokens = kind == KvCacheKind::Static ? 9000 : 0;
            ModelConfig config = twoGroups();
            config.headDim = 64;
            KvCache cache(*context, config, options);
            const std::vector<const void*> addresses = addressesOf(cache);
            const auto& statistics = context->memory().statistics();
            const std::uint64_t before = statistics.reserved;
            const int a = cache.addSequence();
            const int b = cache.addSequence();
            append(cache, a, 9000);
            append(cache, b, 5000);
            EXPECT_EQ(addressesOf(cache), addresses);
            EXPECT_EQ(statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)],
                      cache.bytes());
            const std::uint64_t most = statistics.reserved;
            EXPECT_GE(most - before, cache.bytes());
            EXPECT_LE(most - before, cache.bytes() + 2 * traits.mapUnit + 2 * 256);
            cache.removeSequence(a);
            EXPECT_EQ(statistics.reserved, most) << "what lies before a page in use stays";
            append(cache, cache.addSequence(), 9000);
            EXPECT_EQ(statistics.reserved, most) << "and is used first";
            cache.removeSequence(0);
            cache.removeSequence(b);
            EXPECT_EQ(statistics.reserved, before);
            EXPECT_EQ(cache.bytes(), 0U);
        }
    }
}

/// Random appends, trims and ends in a budget: what does not fit changes nothing, no bytes are lost, Meta and CPU
/// agree.
TEST(KvCache, RandomHistoriesInABudget) {
    const auto run = [](kernels::Backend backend, std::uint32_t seed, KvCacheKind kind) {
        kernels::ContextOptions options;
        options.backend = backend;
        options.threads = 1;
        options.traits = test::testTraits();
        const std::uint64_t budget = kind == KvCacheKind::Static ? 8 : 6; // MiB
        options.memory.deviceBudget = options.traits.untrackedBytes + (budget << 20);
        kernels::Context context(options);
        const auto& statistics = context.memory().statistics();
        const std::uint64_t before = statistics.reserved;
        std::vector<std::uint64_t> log;
        {
            ModelConfig config = twoGroups();
            config.headDim = 64;
            config.layers[0].window = config.layers[2].window = 700;
            KvCacheOptions cacheOptions = pagesOf(64);
            cacheOptions.kind = kind;
            cacheOptions.maxTokens = kind == KvCacheKind::Static ? 3000 : 0;
            KvCache cache(context, config, cacheOptions);
            std::mt19937 random(seed);
            std::vector<int> live;
            for (int step = 0; step < 150; ++step) {
                const auto action = random() % 8;
                const std::uint64_t tokens = random() % 900;
                try {
                    if (action < 2 || live.empty()) {
                        live.push_back(cache.addSequence());
                    } else if (action < 6) {
                        append(cache, live[tokens % live.size()], static_cast<std::int64_t>(tokens));
                    } else if (action == 6 && cache.length(live.front()) < 600) {
                        cache.trim(live.front(), cache.length(live.front()) / 2);
                    } else {
                        const auto gone = live.begin() + static_cast<std::ptrdiff_t>(tokens % live.size());
                        cache.removeSequence(*gone);
                        live.erase(gone);
                    }
                } catch (const base::OutOfMemory&) {
                    log.push_back(7);
                } catch (const base::BadInput&) {
                    log.push_back(8); // a static cache is full
                }
                EXPECT_EQ(statistics.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)],
                          cache.bytes());
                EXPECT_LE(statistics.reserved, options.memory.deviceBudget);
                log.push_back(statistics.reserved);
                log.push_back(cache.bytes());
            }
        }
        EXPECT_EQ(statistics.reserved, before);
        return log;
    };
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
        for (const KvCacheKind kind : {KvCacheKind::Dynamic, KvCacheKind::Static}) {
            const auto log = run(kernels::Backend::Meta, seed, kind);
            ASSERT_EQ(log, run(kernels::Backend::Cpu, seed, kind)) << seed;
            EXPECT_GT(std::count(log.begin(), log.end(), 7U), 0) << "nothing was ever refused";
        }
    }
}

TEST(PagedKvCache, AnEmptyPoolIsOutOfMemoryWithItsDetails) {
    const auto context = test::makeContext(kernels::Backend::Meta);
    KvCache cache(*context, twoGroups(), poolOf(4, 3, 1));
    const int sequence = cache.addSequence();
    append(cache, sequence, 12);
    const KvAppend more{sequence, 1};
    try {
        cache.reserve({&more, 1});
        FAIL() << "the pool had three pages";
    } catch (const base::OutOfMemory& error) {
        EXPECT_EQ(error.details().what, "kv_cache.full");
        EXPECT_EQ(error.details().largestFree, 0U);
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
