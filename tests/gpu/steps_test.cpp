// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Steps that become graphs and are launched ahead: what they compute, what they say of memory and of themselves.

#include "engine/generation/generator.h"
#include "engine/model/model.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/gpu/context_testing.h"
#include "tests/gpu/step_sink.h"

namespace vitrine::gpu {
namespace {

using namespace engine;

struct Done {
    GenerateReport report;
    kernels::MemoryStatistics memory;
    StepSink sink;
};

void generate(Done& done, bool graphs, kernels::ProfileLevel level) {
    kernels::ContextOptions options;
    options.backend = kernels::Backend::Cuda;
    options.sink = &done.sink;
    options.profile = level;
    options.foldSteps = graphs;
    kernels::Context context(options);
    Model model(context, openModel("synthetic:tiny-gpt-oss"), {false, kernels::DType::BF16, 7}, nullptr);
    GenerateOptions generate;
    generate.cache.dtype = kernels::DType::BF16;
    generate.cache.pageTokens = 16; // pages are added on the way
    std::vector<GenerateRequest> requests(3);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].prompt = {static_cast<std::int32_t>(5 + 3 * i)}; // a prompt of one token is no decode step
        requests[i].maxNewTokens = 60 + static_cast<std::int64_t>(20 * i);
    }
    Generator(model, nullptr, generate).run(requests, done.report, {});
    done.memory = context.memory().statistics();
}

/// Without what is not the run's: another process on the device may come and go meanwhile.
template <class Categories> Categories tracked(Categories bytes) {
    bytes[static_cast<std::size_t>(base::MemoryCategory::Untracked)] = 0;
    return bytes;
}

class GpuSteps : public GpuTest {};

TEST_F(GpuSteps, GraphsAndStepsLaunchedAheadChangeNothing) {
    Done eager, light, full, off;
    generate(eager, false, kernels::ProfileLevel::Full);
    generate(light, true, kernels::ProfileLevel::Light);
    generate(full, true, kernels::ProfileLevel::Full);
    generate(off, true, kernels::ProfileLevel::Off);
    EXPECT_TRUE(eager.sink.replays.empty());
    EXPECT_TRUE(off.sink.steps.empty());
    for (const Done* done : {&light, &full, &off}) {
        for (std::size_t i = 0; i < 3; ++i) {
            EXPECT_EQ(done->report.results[i].ids, eager.report.results[i].ids) << "request " << i;
        }
        EXPECT_EQ(done->report.decodeSteps, eager.report.decodeSteps);
        EXPECT_EQ(tracked(done->memory.peakByCategory), tracked(eager.memory.peakByCategory));
        EXPECT_EQ(tracked(done->memory.maxByCategory), tracked(eager.memory.maxByCategory));
        EXPECT_EQ(done->memory.allocations, eager.memory.allocations);
        EXPECT_EQ(done->memory.frees, eager.memory.frees);
    }
    for (const Done* done : {&light, &full}) {
        EXPECT_GT(done->sink.replays.at("decode"), 80);
        ASSERT_EQ(done->sink.steps.size(), eager.sink.steps.size());
        base::TimeNs last = 0;
        for (std::size_t i = 0; i < done->sink.steps.size(); ++i) {
            const StepSink::Step& step = done->sink.steps[i];
            EXPECT_EQ(step.name, eager.sink.steps[i].name) << "step " << i;
            EXPECT_EQ(step.index, eager.sink.steps[i].index) << "step " << i;
            EXPECT_GE(step.begin, last) << "step " << i << " began before the one before it ended";
            EXPECT_GE(step.end, step.begin);
            last = step.end;
        }
    }
}

} // namespace
} // namespace vitrine::gpu
