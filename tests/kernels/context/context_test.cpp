// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/context/context.h"

#include <gtest/gtest.h>

#include "base/error.h"
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

} // namespace
} // namespace vitrine::kernels
