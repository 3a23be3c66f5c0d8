// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/block_counts.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/context/cpu_context.h"
#include "kernels/program/emitter.h"
#include "tests/kernels/ops/attention/block_counts_testing.h"

namespace vitrine::kernels {
namespace {

using testing::Captures;
using testing::ContextEvaluator;

TEST(BlockCounts, CountsEveryElementOfABlock) {
    std::mt19937 random(5);
    CpuContext context(2);
    for (int i = 0; i < 40; ++i) {
        const BlockMaskShape shape = testing::randomShape(random);
        testing::RandomProgram source(random, 120, 3);
        const Program mask = source.mask();
        const Captures captures = source.captures(mask);
        const std::vector<BlockPlace> places = testing::allPlaces(shape);
        ContextEvaluator evaluator(context, mask, captures.binding, shape);
        std::vector<std::int32_t> counts(places.size());
        evaluator.count(places, true, counts);
        for (std::size_t k = 0; k < places.size(); ++k) {
            ASSERT_EQ(counts[k], testing::allowedElements(mask, captures.binding, shape, places[k]))
                << printProgram(mask, "mask");
        }
    }
}

TEST(BlockCounts, MasksOfAnEvaluatorAreThePoolsMasks) {
    std::mt19937 random(6);
    CpuContext context(2);
    base::ThreadPool pool(2);
    for (int i = 0; i < 80; ++i) {
        const BlockMaskShape shape = testing::randomShape(random);
        testing::RandomProgram source(random, 120, 3);
        const Program mask = source.mask();
        const Captures captures = source.captures(mask);
        const BlockMask expected = buildBlockMask(mask, captures.binding, shape, pool);
        ContextEvaluator evaluator(context, mask, captures.binding, expected.shape);
        evaluator.worth = i % 3 == 0 ? std::int64_t{1} << 40 : 1; // not worth it: the pool looks
        testing::expectSameMask(buildBlockMask(mask, captures.binding, shape, pool, nullptr, {}, &evaluator), expected);
        EXPECT_EQ(elementDensity(expected, mask, captures.binding, pool, {}, &evaluator),
                  elementDensity(expected, mask, captures.binding, pool));
        EXPECT_TRUE(i % 3 != 0 || evaluator.asked == 0);
    }
}

TEST(BlockCounts, KnowsWhichProgramsAreExact) {
    testing::Maker maker;
    EXPECT_TRUE(isExactOnDevice(maker.finish(((maker.q - maker.k) / 3) <= 2.5)));
    testing::Maker other;
    EXPECT_FALSE(isExactOnDevice(other.finish((other.q / 3).of(ProgramOp::Sin) <= 0.5)));
}

TEST(BlockCounts, ChecksItsTensors) {
    const Program mask = causalMask();
    BlockCounts op;
    op.mask.program = &mask;
    op.shape = {1, 1, 256, 256, 128, 128};
    std::vector<std::int32_t> places(8), counts(2);
    op.places = {places.data(), DType::I32, Shape{2, 4}, 0};
    op.counts = {counts.data(), DType::I32, Shape{2}, 0};
    check(op);
    op.counts.shape = Shape{3};
    EXPECT_THROW(check(op), base::Internal);
    op.counts.shape = Shape{2};
    op.shape.queryBlock = op.shape.keyBlock = op.shape.queries = op.shape.keys = 1 << 20;
    EXPECT_THROW(check(op), base::Internal);
}

} // namespace
} // namespace vitrine::kernels
