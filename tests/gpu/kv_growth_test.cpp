// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// KV caches that grow where they lie in a GPU's memory, under graphs that were captured before.

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "engine/generation/batch_replay.h"
#include "tests/bytes.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/gpu/context_testing.h"
#include "tests/kernels/core/recording_sink.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

using vitrine::test::kMiB;

class GpuKvGrowth : public GpuTest {};

std::vector<const void*> addressesOf(const KvCache& cache) {
    std::vector<const void*> out;
    for (const KvGroup& group : cache.groups()) {
        out.push_back(cache.layerView(group.layers.front()).keys.data);
    }
    return out;
}

/// Memory comes as tokens come and goes when they go, and what was written stays where it was.
TEST_F(GpuKvGrowth, MemoryComesAndGoesAndNothingMoves) {
    const auto context = cudaContext();
    const ModelConfig config = openModel("synthetic:gpt-oss-20b").config;
    const std::uint64_t before = context->cuda()->usedBytes();
    {
        KvCache cache(*context, config, {});
        EXPECT_LT(context->cuda()->usedBytes(), before + 8 * kMiB) << "addresses are no memory";
        const std::vector<const void*> addresses = addressesOf(cache);
        const int sequence = cache.addSequence();
        const auto grow = [&](std::int64_t tokens) {
            const KvAppend more{sequence, tokens};
            cache.reserve({&more, 1});
            cache.commit({&more, 1});
            ASSERT_EQ(addressesOf(cache), addresses);
        };
        grow(64);
        const int full = cache.groupOf(1);
        std::vector<std::uint8_t> pattern(cache.groups()[static_cast<std::size_t>(full)].pageBytes);
        for (std::size_t i = 0; i < pattern.size(); ++i) {
            pattern[i] = static_cast<std::uint8_t>(i * 31 >> 3);
        }
        context->upload(pattern.data(), cache.pageData(full, 0), pattern.size());
        for (int i = 0; i < 60; ++i) {
            grow(500);
            const auto last = static_cast<std::int32_t>((cache.length(sequence) - 1) / kPageTokens);
            context->upload(pattern.data(), cache.pageData(full, last), pattern.size());
        }
        std::vector<std::uint8_t> read(pattern.size());
        context->download(cache.pageData(full, 0), read.data(), read.size());
        EXPECT_EQ(read, pattern);
        const std::uint64_t used = context->cuda()->usedBytes() - before;
        EXPECT_NEAR(static_cast<double>(used) / kMiB, static_cast<double>(cache.bytes()) / kMiB, 16);
        cache.removeSequence(sequence);
        EXPECT_LT(context->cuda()->usedBytes(), before + 16 * kMiB) << "an empty cache holds nothing";
    }
    EXPECT_EQ(context->memory().statistics().currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)],
              0U);
}

class GpuKvGrowthOf : public GpuTest, public ::testing::WithParamInterface<kernels::DType> {
protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (!IsSkipped()) {
            context_ = cudaContext(&sink_, true);
            // In float32 no answer hangs on the order of a sum.
            model_ = std::make_unique<Model>(*context_, openModel("synthetic:tiny-gpt-oss"),
                                             ModelOptions{false, kernels::DType::F32, 7}, nullptr);
        }
    }
    std::uint64_t reserved() const { return context_->memory().statistics().reserved; }
    std::size_t replays() const { return sink_.all<base::StepReplayedEvent>().size(); }

    kernels::RecordingSink sink_;
    std::unique_ptr<kernels::Context> context_;
    std::unique_ptr<Model> model_;
};

/// Tokens decoded over many growths, by graphs, are those of a cache that never grows.
TEST_P(GpuKvGrowthOf, GraphsStayValid) {
    std::vector<GenerateRequest> requests(16);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        for (std::size_t t = 0; t < 3 + 11 * i; ++t) {
            requests[i].prompt.push_back(static_cast<std::int32_t>((13 * t + 7 * i + 1) % 200));
        }
        requests[i].maxNewTokens = 2000 - 40 * static_cast<std::int64_t>(i % 3);
    }
    std::vector<std::vector<std::int32_t>> expected;
    for (const KvCacheKind kind : {KvCacheKind::Static, KvCacheKind::Dynamic, KvCacheKind::Paged}) {
        GenerateOptions generate;
        generate.cache.kind = kind;
        generate.cache.dtype = GetParam();
        generate.cache.aheadBytes = 0;
        std::set<std::uint64_t> sizes;
        const std::size_t before = replays();
        GenerateReport report;
        Generator(*model_, nullptr, generate).run(requests, report, [&](const GeneratedToken&) {
            sizes.insert(reserved());
        });
        std::vector<std::vector<std::int32_t>> ids;
        ids.reserve(requests.size());
        for (const GenerateResult& result : report.results) {
            ids.push_back(result.ids);
        }
        if (kind == KvCacheKind::Static) {
            expected = std::move(ids);
            continue;
        }
        EXPECT_EQ(ids, expected) << static_cast<int>(kind);
        EXPECT_GE(sizes.size(), 3U) << "it never grew";
        EXPECT_GT(replays() - before, 1900U) << "few steps were graphs";
    }
}

/// The same for pools of batches, with shared prefixes and under preemption.
TEST_P(GpuKvGrowthOf, PoolsOfBatchesGrow) {
    std::vector<GenerateRequest> requests(20);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const std::size_t salt = i < 15 ? i : i - 15; // the last ones begin as the first ones do
        for (std::size_t t = 0; t < 150 + 11 * i; ++t) {
            requests[i].prompt.push_back(static_cast<std::int32_t>((13 * t + 7 * salt + 1) % 200));
        }
        requests[i].maxNewTokens = 1500 - 60 * static_cast<std::int64_t>(i % 7);
    }
    BatchOptions options;
    options.cache.dtype = GetParam();
    options.cache.aheadBytes = 0;
    options.scheduler.slots = 16;
    options.scheduler.tokenBudget = 700;
    options.scheduler.swapPages = 10'000;
    std::set<std::uint64_t> sizes;
    const auto serve = [&] {
        sizes.clear();
        BatchEngine engine(*model_, nullptr, options);
        const KvCache& cache = engine.cache();
        const std::vector<const void*> addresses = addressesOf(cache);
        engine.onToken([&](const GeneratedToken&) { sizes.insert(cache.poolBytes()); });
        std::vector<ArrivingRequest> arriving;
        arriving.reserve(requests.size());
        for (const GenerateRequest& request : requests) {
            arriving.push_back({request, 0, {}});
        }
        replayRequests(engine, *context_, std::move(arriving));
        EXPECT_EQ(addressesOf(cache), addresses);
        std::vector<std::vector<std::int32_t>> ids;
        ids.reserve(requests.size());
        for (std::size_t i = 0; i < requests.size(); ++i) {
            ids.push_back(engine.result(static_cast<std::int32_t>(i)).result.ids);
        }
        return std::pair(ids, engine.counts());
    };
    // The same steps with all of the pool at once, where nothing grows after the first one.
    const auto growsAlike = [&](const char* what) {
        options.cache.aheadBytes = std::uint64_t{1} << 30;
        const auto [whole, wholeCounts] = serve();
        EXPECT_LE(sizes.size(), 1U) << what;
        options.cache.aheadBytes = 0;
        const auto [grown, counts] = serve();
        EXPECT_GE(sizes.size(), 2U) << what << ": it never grew";
        EXPECT_TRUE(grown == whole) << what;
        EXPECT_EQ(counts.steps, wholeCounts.steps) << what;
        EXPECT_EQ(counts.preemptions, wholeCounts.preemptions) << what;
        return std::pair(grown, counts.preemptions);
    };
    options.longestPrompt = 400;
    options.longestSequence = 2000;
    const auto plain = growsAlike("plain").first;
    options.cache.sharePrefixes = true;
    const bool exact = GetParam() == kernels::DType::F32; // others round what other kernels computed
    EXPECT_TRUE(growsAlike("shared prefixes").first == plain || !exact);
    options.cache.sharePrefixes = false;
    // Few enough that requests are put back, and more memory than is mapped at once.
    options.cache.poolPages = kernels::isQuantizedKv(GetParam()) ? 300 : 200;
    for (const Preemption preemption : {Preemption::Recompute, Preemption::Swap}) {
        options.scheduler.preemption = preemption;
        const auto [ids, preemptions] = growsAlike(preemption == Preemption::Swap ? "swap" : "recompute");
        EXPECT_TRUE(ids == plain || !exact);
        EXPECT_GT(preemptions, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Every, GpuKvGrowthOf,
                         ::testing::Values(kernels::DType::F32, kernels::DType::BF16, kernels::DType::F8E4M3,
                                           kernels::DType::I8),
                         [](const auto& item) { return std::string(kernels::dtypeName(item.param)); });

/// Nothing is left of growth that the driver refuses at any of its calls.
TEST_F(GpuKvGrowth, RefusedMemoryLeavesNothing) {
    const ModelConfig config = openModel("synthetic:gpt-oss-20b").config;
    const auto first = cudaContext(); // keeps the device's context alive, so that the others start at once
    int refused = 0;
    for (std::uint64_t from = 1; from < 60; ++from) {
        kernels::ContextOptions options;
        options.backend = kernels::Backend::Cuda;
        options.cuda.failFrom = from;
        std::int64_t tokens = 0;
        try {
            kernels::Context context(options);
            const std::uint64_t before = context.memory().statistics().reserved;
            KvCache cache(context, config, {});
            const int sequence = cache.addSequence();
            try {
                for (; tokens < 2000; tokens += 100) {
                    const KvAppend more{sequence, 100};
                    cache.reserve({&more, 1});
                    cache.commit({&more, 1});
                }
            } catch (const base::OutOfMemory&) {
                ++refused;
                EXPECT_EQ(cache.length(sequence), tokens);
                cache.removeSequence(sequence);
                EXPECT_EQ(context.memory().statistics().reserved, before);
            }
        } catch (const base::OutOfMemory&) {
            ++refused; // of the context, or of addresses
        }
        if (tokens >= 2000) {
            break;
        }
    }
    EXPECT_GT(refused, 10);
}

} // namespace
} // namespace vitrine::gpu
