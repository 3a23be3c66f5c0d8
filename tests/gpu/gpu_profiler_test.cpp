// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Profiling a real device: work of eager steps and of a graph's replays stands under the ops that launched it.

#include "profiler/gpu/gpu_profiler.h"

#include <deque>
#include <gtest/gtest.h>
#include <map>

#include "kernels/context/context.h"
#include "kernels/context/context_options.h"
#include "kernels/core/tensor.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/memory/memory.h"
#include "kernels/memory/resource.h"
#include "profiler/analysis/kernel_table.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/gpu/readiness.h"
#include "profiler/record/recorder.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::profiler {
namespace {

constexpr std::int64_t kSize = 256;
constexpr std::uint64_t kBytes = kSize * kSize * 2;

class GpuProfile : public testing::Test {
protected:
    void SetUp() override {
        if (const std::string why = kernels::whyNoCuda(); !why.empty()) {
            GTEST_SKIP() << why;
        }
        if (const std::string why = whyNoCupti(false); !why.empty()) {
            GTEST_SKIP() << why;
        }
    }

    /// Two ops: a product (cuBLASLt's kernels) and a fill.
    static void work(kernels::Context& context, void* memory) {
        auto* base = static_cast<std::byte*>(memory);
        {
            const kernels::TraceScope op(context.tracer(), base::ScopeKind::Op, "Product");
            kernels::CudaContext::DenseProduct product;
            product.x = base;
            product.weight = base + kBytes;
            product.out = base + 2 * kBytes;
            product.m = product.n = product.k = kSize;
            product.xStride = product.weightStride = product.outStride = kSize;
            context.cuda()->multiply(product);
        }
        const kernels::TraceScope op(context.tracer(), base::ScopeKind::Op, "Fill");
        context.cuda()->fill(base, 0, kBytes);
    }

    /// Two eager steps, one that is captured and launched, then replays.
    static void run(kernels::Context& context, int replays) {
        const kernels::Buffer memory(context.memory().general(), 3 * kBytes,
                                     {base::MemoryCategory::Other, "test", kernels::DType::U8, {}});
        kernels::CudaContext& gpu = *context.cuda();
        kernels::Tracer& tracer = context.tracer();
        work(context, memory.data()); // libraries start here
        gpu.synchronize();
        int step = 0;
        for (; step < 2; ++step) {
            tracer.beginStep("decode", step, 1);
            work(context, memory.data());
            tracer.endStep();
        }
        tracer.beginStep("decode", step++, 1);
        gpu.beginCapture();
        work(context, memory.data());
        const kernels::CudaGraph graph = gpu.endCapture();
        gpu.replay(graph);
        tracer.endStep();
        ASSERT_TRUE(tracer.lastTemplate());
        // Each is launched before the one before it is over.
        std::deque<std::pair<kernels::StepReplay, kernels::CudaEvent>> launched;
        for (int i = 0; i < replays + 2; ++i) {
            if (i < replays) {
                const kernels::StepReplay replay = tracer.beginReplay(tracer.lastTemplate(), step++);
                const kernels::ReplayScope scope(tracer, replay);
                gpu.replay(graph);
                launched.emplace_back(replay, gpu.record());
            }
            if (i >= 2) {
                launched.front().second.wait();
                tracer.endReplay(launched.front().first);
                launched.pop_front();
            }
        }
    }

    static std::shared_ptr<const RunTimeline> profiled(const GpuProfilerOptions& options, int replays) {
        Recorder recorder;
        const base::MonotonicClock clock;
        {
            GpuProfiler profiler(recorder, clock, options);
            kernels::ContextOptions made;
            made.backend = kernels::Backend::Cuda;
            made.sink = &profiler;
            made.clock = &clock;
            made.profile = kernels::ProfileLevel::Full;
            made.foldSteps = true;
            {
                kernels::Context context(made);
                run(context, replays);
            }
            profiler.finish(); // runs end so: their context is gone by then
        }
        RunTimelineBuilder builder;
        for (const base::ColumnChunk& chunk : recorder.finish()) {
            builder.add(chunk);
        }
        return builder.snapshot();
    }
};

TEST_F(GpuProfile, WorkStandsUnderItsOpsInGraphsToo) {
    GpuProfilerOptions options;
    options.full = true;
    options.windowSteps = options.windowPeriod = 1000;
    options.deviceCounters = false;
    // Twice: the session with CUPTI goes on over runs.
    for (int round = 0; round < 2; ++round) {
        const auto timeline = profiled(options, 20);
        ScopePlaces places(*timeline);
        std::map<std::string, std::map<std::string, int>> opsByLane;
        std::map<std::int32_t, std::pair<base::TimeNs, base::TimeNs>> kernelsByStep; ///< first and last begin
        for (const base::SpanEvent& span : timeline->kernels().spans()) {
            const std::string lane(timeline->text(span.lane.value));
            const ScopePlace place = places.of(span.scope.value);
            ++opsByLane[lane][std::string(timeline->text(place.op))];
            if (lane == "Kernels" && place.step >= 0) {
                const auto [step, isNew] = kernelsByStep.try_emplace(place.step, span.begin, span.begin);
                step->second.first = std::min(step->second.first, span.begin);
                step->second.second = std::max(step->second.second, span.begin);
            }
        }
        EXPECT_EQ(opsByLane["Kernels"].size(), 1U);
        EXPECT_GE(opsByLane["Kernels"]["Product"], 23);
        EXPECT_EQ(opsByLane["Memsets"]["Fill"], 24);
        EXPECT_EQ(kernelsByStep.size(), 23U);
        base::TimeNs last = 0;
        for (const auto& [step, begins] : kernelsByStep) {
            EXPECT_GT(begins.first, last) << "a kernel of step " << step << " ran before the step before it was over";
            last = begins.second;
        }
        EXPECT_GE(kernelTable(*timeline).attribution(), 0.95);
    }
}

TEST_F(GpuProfile, LightTracesWholeGraphsKernelsOfAFewStepsAndCounters) {
    GpuProfilerOptions options;
    const auto timeline = profiled(options, 20);
    std::map<std::string, int> lanes;
    ScopePlaces places(*timeline);
    for (const base::SpanEvent& span : timeline->kernels().spans()) {
        const std::string lane(timeline->text(span.lane.value));
        ++lanes[lane];
        if (lane == "Graphs") {
            EXPECT_GE(places.of(span.scope.value).step, 2);
        }
    }
    EXPECT_EQ(lanes["Graphs"], 17) << "of the first 20 steps, two of which were launched one by one; of one more, its "
                                      "kernels";
    EXPECT_GE(lanes["Kernels"], 2);
    EXPECT_FALSE(timeline->counters().samples("gpu.memory_used_bytes").empty());
}

} // namespace
} // namespace vitrine::profiler
