// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/planning/priced_work.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/context/context.h"
#include "kernels/ops/linear/matmul.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::Shape;
using kernels::Tensor;

/// A product of two square matrices of bfloat16.
void multiplySquares(kernels::Context& context, std::int64_t size) {
    kernels::MemoryResource& memory = context.memory().general();
    const auto make = [&] { return Tensor(memory, base::MemoryCategory::Other, "m", DType::BF16, Shape{size, size}); };
    const Tensor x = make(), weight = make(), out = make();
    kernels::Matmul op;
    op.x = x.view();
    op.weight = kernels::denseWeight(weight.view());
    op.out = out.view();
    context.run(op);
}

TEST(PricedWork, AnyCallableHasAPeakAndATime) {
    const auto small = test::makeContext(kernels::Backend::Meta);
    const PricedWork first = priceWork(*small, [](kernels::Context& context) { multiplySquares(context, 1024); });
    EXPECT_TRUE(first.fits());
    // What is left is what no tensor holds: the driver's share.
    EXPECT_EQ(first.memory.peak - first.memory.current, std::uint64_t{3} * 1024 * 1024 * 2);
    EXPECT_GT(first.seconds, 0);
    const auto large = test::makeContext(kernels::Backend::Meta);
    const PricedWork second = priceWork(*large, [](kernels::Context& context) { multiplySquares(context, 8192); });
    EXPECT_GT(second.seconds, 10 * first.seconds) << "the host takes as long to launch either";
    EXPECT_GE(second.memory.peakReserved, second.memory.peak);
}

TEST(PricedWork, SaysWhatDidNotFit) {
    kernels::ContextOptions options;
    options.backend = kernels::Backend::Meta;
    options.traits = test::testTraits();
    options.memory.deviceBudget = std::uint64_t{64} << 20;
    kernels::Context context(options);
    const PricedWork priced = priceWork(context, [](kernels::Context& meta) { multiplySquares(meta, 8192); });
    ASSERT_FALSE(priced.fits());
    EXPECT_GT(priced.outOfMemory->details().requested, options.memory.deviceBudget);
    EXPECT_THROW(priceWork(context, [](kernels::Context&) { throw base::BadInput("x"); }), base::BadInput);
}

} // namespace
} // namespace vitrine::engine
