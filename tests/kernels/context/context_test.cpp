// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/context/context.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/context/context_options.h"
#include "kernels/memory/memory.h"
#include "kernels/ops/linear/matmul_gradients.h"
#include "kernels/ops/linear/weights.h"
#include "kernels/ops/optimizer/adamw.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "tests/kernels/core/recording_sink.h"

namespace vitrine::kernels {
namespace {

/// An op of this test alone.
struct Probe {
    static constexpr std::string_view kName = "Probe";
    int* runs = nullptr;
    bool valid = true;
};
void check(const Probe& op) {
    if (!op.valid) {
        throw base::Internal("Probe: not valid");
    }
}
Cost cost(const Probe&, const DeviceTraits&) {
    return Cost{1'000'000'000, 0, 0, 0, DType::F32};
}
void execute(CpuContext&, const Probe& op) {
    ++*op.runs;
}
void execute(CudaContext&, const Probe&) {}

static_assert(categoryOfOp<Probe>() == base::MemoryCategory::Activations);
static_assert(categoryOfOp<MatmulInputGradient>() == base::MemoryCategory::Gradients);
static_assert(categoryOfOp<MatmulWeightGradient>() == base::MemoryCategory::Gradients);
static_assert(categoryOfOp<AdamW>() == base::MemoryCategory::Optimizer);

TEST(Context, OpsSayTheirCategoryInTheTrace) {
    RecordingSink sink;
    ContextOptions options;
    options.sink = &sink;
    options.profile = ProfileLevel::Full;
    Context context(options);
    const Tensor values(context.memory().general(), base::MemoryCategory::Other, "values", DType::F32, Shape{8});
    context.run(SetZero{values.view()});
    context.run(FillRandom{values.view()});
    const auto scopes = sink.all<base::ScopeBeginEvent>();
    ASSERT_EQ(scopes.size(), 2U);
    EXPECT_EQ(scopes[0].category, base::MemoryCategory::Activations);
    EXPECT_EQ(scopes[1].category, base::MemoryCategory::Weights);
}

TEST(Context, CpuRunsAndTraces) {
    RecordingSink sink;
    ContextOptions options;
    options.sink = &sink;
    options.profile = ProfileLevel::Full;
    Context context(options);
    int runs = 0;
    context.run(Probe{&runs});
    EXPECT_EQ(runs, 1);
    ASSERT_EQ(sink.all<base::ScopeBeginEvent>().size(), 1U);
    EXPECT_EQ(sink.texts[sink.all<base::ScopeBeginEvent>()[0].name.value], "Probe");
    EXPECT_EQ(sink.all<base::ScopeEndEvent>()[0].bytes, 1'000'000'000U);
    EXPECT_THROW(context.run(Probe{&runs, false}), base::Internal);
    EXPECT_EQ(runs, 1);
}

TEST(Context, MetaAddsRooflineTimeAndRunsNothing) {
    ContextOptions options;
    options.backend = Backend::Meta;
    options.traits = loadDeviceProfile("h200");
    Context context(options);
    int runs = 0;
    context.run(Probe{&runs});
    EXPECT_EQ(runs, 0);
    EXPECT_NEAR(static_cast<double>(context.clock().now()), 1e18 / options.traits.memoryBandwidth, 2);
    EXPECT_EQ(context.clock().timeBase(), base::TimeBase::Virtual);
    EXPECT_EQ(context.memory().statistics().current, options.traits.untrackedBytes);
    EXPECT_EQ(context.memory().budget(), options.traits.memoryBytes);
}

TEST(Context, CudaSaysWhatToDo) {
    ContextOptions options;
    options.backend = Backend::Cuda;
    try {
        const Context context(options);
        FAIL();
    } catch (const base::Unsupported& error) {
        EXPECT_NE(error.message().find("--backend"), std::string::npos);
    }
}

TEST(Context, SaysWhatItCanDo) {
    Context cpu({});
    EXPECT_TRUE(cpu.can().computesValues);
    EXPECT_TRUE(cpu.can().runsOnHost);
    EXPECT_FALSE(cpu.can().virtualTime);
    EXPECT_FALSE(cpu.can().runsAhead);
    EXPECT_GT(cpu.hostPool().threads(), 0);
    EXPECT_EQ(cpu.kernelLibrary(), nullptr);

    ContextOptions options;
    options.backend = Backend::Meta;
    options.traits = loadDeviceProfile("h200");
    const Context meta(options);
    EXPECT_FALSE(meta.can().computesValues);
    EXPECT_TRUE(meta.can().virtualTime);
    EXPECT_FALSE(meta.can().runsOnHost);
    EXPECT_FALSE(meta.can().runsAhead) << "a GPU's traits make no GPU";
    EXPECT_FALSE(meta.can().replaysGraphs);
    EXPECT_TRUE(meta.traits().features.kernelScratch);
}

TEST(Context, MarksAndWaitsFollowTheContextsTime) {
    ContextOptions options;
    options.backend = Backend::Meta;
    options.traits = loadDeviceProfile("h200");
    Context context(options);
    const Mark begin = context.mark();
    context.passTime(0.25);
    context.passCopyTime(0.5);
    context.joinStreams();
    const Mark middle = context.mark();
    EXPECT_DOUBLE_EQ(middle.secondsSince(begin), 0.5);
    context.waitUntil(2'000'000'000);
    EXPECT_EQ(context.clock().now(), 2'000'000'000);
    context.waitUntil(1'000'000'000);
    EXPECT_EQ(context.clock().now(), 2'000'000'001) << "time that has passed still moves on, so that waits end";
    EXPECT_DOUBLE_EQ(context.mark().secondsSince(middle), 1.500000001);
}

TEST(Context, PrefetchCompilesNothingWhereNothingIsCompiled) {
    Context context({});
    int runs = 0;
    {
        Prefetch prefetch(context);
        prefetch.add(Probe{&runs});
    }
    context.waitForKernels(nullptr);
    EXPECT_EQ(runs, 0);
}

} // namespace
} // namespace vitrine::kernels
