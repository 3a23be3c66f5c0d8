// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// KV caches in a GPU's memory.

#include "engine/cache/kv_cache.h"

#include "tests/engine/model/model_test_support.h"
#include "tests/gpu/context_testing.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

class GpuKvCache : public GpuTest {};

/// Bytes of gpt-oss-20b's cache at 131,072 tokens: what the formula says, the allocator counts and the driver misses.
TEST_F(GpuKvCache, TheLongestContextOfGptOssByAllocation) {
    const ModelConfig config = openModel("synthetic:gpt-oss-20b").config;
    constexpr double kGib = std::uint64_t{1} << 30;
    const auto takenBy = [&](bool slides, kernels::DType dtype) {
        kernels::ContextOptions contextOptions;
        contextOptions.backend = kernels::Backend::Cuda;
        kernels::Context context(contextOptions);
        KvCacheOptions options;
        options.kind = KvCacheKind::Paged;
        options.dtype = dtype;
        options.poolPages = 131'072 / kPageTokens;
        options.poolSequences = 1;
        options.slidingSaves = slides;
        const std::uint64_t before = context.cuda()->usedBytes();
        KvCache cache(context, config, options);
        const KvAppend all{cache.addSequence(), 131'072};
        cache.reserve({&all, 1});
        cache.commit({&all, 1});
        const auto driver = static_cast<double>(context.cuda()->usedBytes() - before);
        EXPECT_EQ(cache.poolBytes(), kvPoolBytes(cache.groups(), options));
        EXPECT_EQ(
            context.memory().statistics().currentByCategory[static_cast<std::size_t>(base::MemoryCategory::KvCache)],
            cache.poolBytes());
        EXPECT_NEAR(driver / kGib, static_cast<double>(cache.poolBytes()) / kGib, 0.01);
        return static_cast<double>(cache.poolBytes()) / kGib;
    };
    EXPECT_NEAR(takenBy(true, kernels::DType::BF16), 3.003, 0.001);
    EXPECT_EQ(takenBy(false, kernels::DType::BF16), 6);
    for (const kernels::DType dtype : {kernels::DType::F8E4M3, kernels::DType::I8}) {
        constexpr double kRow = 68.0 / 128; // a scale for each 64 elements
        EXPECT_NEAR(takenBy(true, dtype), 3.003 * kRow, 0.001);
        EXPECT_EQ(takenBy(false, dtype), 6 * kRow);
    }
}

} // namespace
} // namespace vitrine::gpu
