// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/attention/block_mask_cache.h"

#include <gtest/gtest.h>
#include <thread>

#include "base/error.h"
#include "engine/language/module.h"
#include "kernels/ops/attention/flex_source.h"

namespace vitrine::engine {
namespace {

using kernels::BlockMaskShape;

/// Causal masks of documents whose ids come with the tensor.
struct Documents {
    explicit Documents(std::int32_t length, std::int64_t positions = 512) : ids(static_cast<std::size_t>(positions)) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
            ids[i] = static_cast<std::int32_t>(i) / length;
        }
        const PyFile file{"m.py", "def m(b, h, q, k): return (ids[q] == ids[k]) & (q >= k)\n"};
        CapturedTensor tensor;
        tensor.dtype = kernels::DType::I32;
        tensor.shape = kernels::Shape{positions};
        const auto* const bytes = reinterpret_cast<const std::byte*>(ids.data());
        tensor.data = std::make_shared<std::vector<std::byte>>(bytes, bytes + ids.size() * sizeof(std::int32_t));
        ProgramOptions options;
        options.tensors["ids"] = tensor;
        mod = PyModule::parse(std::span(&file, 1)).mask("m", options);
    }
    std::vector<std::int32_t> ids;
    ChosenProgram mod;
};

constexpr BlockMaskShape kShape{4, 8, 512, 512, 64, 64};

TEST(BlockMaskCache, GivesWhatItBuiltForEqualPrograms) {
    base::ThreadPool pool(2);
    BlockMaskCache cache;
    const Documents first(100);
    const Documents again(100);
    const auto built = cache.get(first.mod.program, first.mod.binding(), kShape, pool);
    EXPECT_FALSE(built.hit);
    const auto kept = cache.get(again.mod.program, again.mod.binding(), kShape, pool);
    EXPECT_TRUE(kept.hit);
    EXPECT_EQ(built.mask, kept.mask);
    EXPECT_EQ(cache.size(), 1U);
    EXPECT_EQ(cache.bytes(), built.mask->metadataBytes());
    // The program ignores batch and heads: other numbers of them are the same mask.
    EXPECT_TRUE(cache.get(first.mod.program, first.mod.binding(), {1, 1, 512, 512, 64, 64}, pool).hit);
}

TEST(BlockMaskCache, OtherContentsLengthsAndBlocksAreOtherMasks) {
    base::ThreadPool pool(2);
    BlockMaskCache cache;
    const Documents documents(100);
    const Documents others(90);
    static_cast<void>(cache.get(documents.mod.program, documents.mod.binding(), kShape, pool));
    const auto other = cache.get(others.mod.program, others.mod.binding(), kShape, pool);
    EXPECT_FALSE(other.hit);
    const kernels::BlockMask fresh = kernels::buildBlockMask(others.mod.program, others.mod.binding(), kShape, pool);
    EXPECT_EQ(other.mask->full, fresh.full);
    EXPECT_EQ(other.mask->partial, fresh.partial);
    for (const BlockMaskShape& shape :
         {BlockMaskShape{4, 8, 500, 512, 64, 64}, BlockMaskShape{4, 8, 512, 500, 64, 64},
          BlockMaskShape{4, 8, 512, 512, 32, 64}, BlockMaskShape{4, 8, 512, 512, 64, 32}}) {
        EXPECT_FALSE(cache.get(documents.mod.program, documents.mod.binding(), shape, pool).hit);
    }
    EXPECT_EQ(cache.size(), 6U);
}

TEST(BlockMaskCache, NewContentsAreNoNewKernels) {
    std::string digest;
    for (const std::int32_t length : {100, 90, 17}) {
        const Documents documents(length);
        const kernels::BoundProgram bound{&documents.mod.program, documents.mod.binding()};
        const auto source = kernels::countingSource(bound);
        EXPECT_TRUE(digest.empty() || digest == source->text.digest);
        digest = source->text.digest;
    }
}

TEST(BlockMaskCache, RowsApartAreContentsAsTheyAreTogether) {
    const Documents documents(64);
    kernels::CaptureBinding together = documents.mod.binding();
    std::vector<std::int32_t> apart;
    for (const std::int32_t id : documents.ids) {
        apart.insert(apart.end(), {id, -1, -1});
    }
    kernels::CaptureBinding strided = together;
    strided.tensors[0].data = apart.data();
    strided.tensors[0].strides[0] = 3;
    EXPECT_EQ(blockMaskKey(documents.mod.program, together, kShape),
              blockMaskKey(documents.mod.program, strided, kShape));
    apart[3] += 1;
    EXPECT_NE(blockMaskKey(documents.mod.program, together, kShape),
              blockMaskKey(documents.mod.program, strided, kShape));
}

TEST(BlockMaskCache, HoldsNoMoreThanItsLimit) {
    base::ThreadPool pool(1);
    const Documents documents(100);
    const kernels::CaptureBinding binding = documents.mod.binding();
    const auto shape = [](std::int64_t block) { return BlockMaskShape{1, 1, 512, 512, block, block}; };
    const std::uint64_t one = kernels::buildBlockMask(documents.mod.program, binding, shape(16), pool).metadataBytes();
    BlockMaskCache cache(2 * one);
    static_cast<void>(cache.get(documents.mod.program, binding, shape(16), pool));
    static_cast<void>(cache.get(documents.mod.program, binding, shape(17), pool));
    EXPECT_TRUE(cache.get(documents.mod.program, binding, shape(16), pool).hit);
    static_cast<void>(cache.get(documents.mod.program, binding, shape(18), pool));
    EXPECT_LE(cache.bytes(), 2 * one);
    EXPECT_TRUE(cache.get(documents.mod.program, binding, shape(16), pool).hit) << "asked for lately";
    EXPECT_FALSE(cache.get(documents.mod.program, binding, shape(17), pool).hit) << "asked for longest ago";
    BlockMaskCache none(1);
    EXPECT_FALSE(none.get(documents.mod.program, binding, shape(16), pool).hit);
    EXPECT_EQ(none.size(), 0U);
    cache.clear();
    EXPECT_EQ(cache.bytes(), 0U);
}

TEST(BlockMaskCache, ServesThreads) {
    BlockMaskCache cache(20000);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&cache, t] {
            base::ThreadPool pool(1);
            const Documents documents(50 + t % 2, 256);
            for (std::int64_t i = 0; i < 30; ++i) {
                const BlockMaskShape shape{1, 1, 256, 256, 8 + i % 7, 16};
                const auto found = cache.get(documents.mod.program, documents.mod.binding(), shape, pool);
                EXPECT_EQ(found.mask->shape.queryBlock, shape.queryBlock);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_LE(cache.bytes(), 20000U);
}

TEST(BlockMaskCache, RefusesWhatCannotBeBuilt) {
    base::ThreadPool pool(1);
    BlockMaskCache cache;
    const Documents documents(100);
    EXPECT_THROW(cache.get(documents.mod.program, {}, kShape, pool), base::BadInput);
    EXPECT_THROW(cache.get(documents.mod.program, documents.mod.binding(), {1, 1, 0, 512, 64, 64}, pool),
                 base::BadInput);
    EXPECT_EQ(cache.size(), 0U);
}

} // namespace
} // namespace vitrine::engine
