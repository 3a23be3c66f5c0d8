// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/gpu_profiler.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <mutex>

#include "base/launch_scope.h"
#include "kernels/core/tracer.h"
#include "kernels/cuda/cuda_context.h"
#include "profiler/gpu/gpu_counters.h"
#include "profiler/gpu/pm_sampling.h"
#include "profiler/gpu/readiness.h"
#include "profiler/gpu/trace_window.h"
#include "profiler/record/recorder.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"
#include "profiler/timeline/scope_facet.h"

namespace vitrine::profiler {
namespace {

/// A device that did what the test says.
class FakeSource final : public WorkSource {
public:
    struct Log {
        std::mutex mutex;
        std::vector<DeviceWork> work;
        std::vector<TraceDetail> details;
        LaunchMap launches;
        std::uint32_t calls = 0;

        /// What a launching call would do, and the record that follows.
        void launch(const char* name, base::TimeNs begin, base::TimeNs end, std::uint64_t node = 0) {
            const std::lock_guard lock(mutex);
            launches.launched(++calls, base::launchScope());
            DeviceWork kernel;
            kernel.begin = begin;
            kernel.end = end;
            kernel.correlation = calls;
            kernel.node = node;
            kernel.name = name;
            work.push_back(kernel);
        }
    };

    explicit FakeSource(Log& log) : log_(log) {}
    void setDetail(TraceDetail detail) override {
        const std::lock_guard lock(log_.mutex);
        log_.details.push_back(detail);
    }
    void collect(bool, const std::function<void(const DeviceWork&)>& take) override {
        const std::lock_guard lock(log_.mutex);
        for (const DeviceWork& work : log_.work) {
            take(work);
        }
        log_.work.clear();
    }
    std::uint64_t lost() const override { return 0; }
    LaunchMap& launches() override { return log_.launches; }

private:
    Log& log_;
};

std::shared_ptr<const RunTimeline> timelineOf(Recorder& recorder) {
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    return builder.snapshot();
}

TEST(GpuProfiler, KernelsStandUnderTheOpsOfTheirReplays) {
    Recorder recorder;
    FakeSource::Log log;
    const base::MonotonicClock clock;
    GpuProfilerOptions options;
    options.full = true;
    options.deviceCounters = false;
    GpuProfiler profiler(recorder, clock, options, std::make_unique<FakeSource>(log));
    kernels::RunTrace run(profiler);
    kernels::Tracer tracer(run, clock, kernels::ProfileLevel::Light);
    const auto at = [&](base::TimeNs time) { return clock.start() + time; };
    const auto step = [&](int index, bool capture) {
        tracer.beginStep("decode", index, 1);
        for (int layer = 0; layer < 2; ++layer) {
            const kernels::TraceScope scope(tracer, base::ScopeKind::Layer, "layer", layer);
            const kernels::TraceScope op(tracer, base::ScopeKind::Op, layer == 0 ? "RmsNorm" : "MatMul");
            if (capture) {
                log.launches.nodeCreated(static_cast<std::uint64_t>(10 + layer), base::launchScope());
                log.launches.nodeCloned(static_cast<std::uint64_t>(10 + layer), static_cast<std::uint64_t>(20 + layer));
            } else {
                log.launch("eager", at(1000 * index + 10 * layer), at(1000 * index + 10 * layer + 5));
            }
        }
        if (capture) {
            log.launch("norm", at(1000 * index), at(1000 * index + 30), 20);
            log.launch("_Z6matmulIiEvT_S0_", at(1000 * index + 40), at(1000 * index + 50), 21);
        }
        tracer.endStep();
    };
    step(1, false);
    step(2, false); // folded: reported under other ids than it ran with
    step(3, true);
    // The second is launched before the first has ended.
    std::vector<kernels::StepReplay> replays;
    for (int index = 4; index < 6; ++index) {
        replays.push_back(tracer.beginReplay(tracer.lastTemplate(), index));
        const kernels::ReplayScope scope(tracer, replays.back());
        log.launch("norm", at(1000 * index), at(1000 * index + 30), 20);
        log.launch("_Z6matmulIiEvT_S0_", at(1000 * index + 40), at(1000 * index + 50), 21);
    }
    for (const kernels::StepReplay& replay : replays) {
        tracer.endReplay(replay);
    }
    profiler.finish();
    EXPECT_EQ(log.details.front(), TraceDetail::Everything);
    EXPECT_EQ(log.details.back(), TraceDetail::Nothing);
    const auto timeline = timelineOf(recorder);
    std::map<std::string, std::vector<std::string>> paths;
    for (const base::SpanEvent& span : timeline->kernels().spans()) {
        EXPECT_EQ(timeline->text(span.lane.value), "Kernels");
        paths[std::string(timeline->text(span.name.value))].push_back(timeline->scopes().path(span.scope.value));
    }
    const std::vector<std::string> eager{"step 1 / layer 0 / RmsNorm", "step 1 / layer 1 / MatMul",
                                         "step 2 / layer 0 / RmsNorm", "step 2 / layer 1 / MatMul"};
    EXPECT_EQ(paths["eager"], eager);
    const std::vector<std::string> norm{"step 3 / layer 0 / RmsNorm", "step 4 / layer 0 / RmsNorm",
                                        "step 5 / layer 0 / RmsNorm"};
    EXPECT_EQ(paths["norm"], norm);
    const std::vector<std::string> product{"step 3 / layer 1 / MatMul", "step 4 / layer 1 / MatMul",
                                           "step 5 / layer 1 / MatMul"};
    EXPECT_EQ(paths["matmul<int>"], product);
    const std::vector<KernelSummary> kernels = profiler.kernels();
    ASSERT_EQ(kernels.size(), 3U);
    EXPECT_EQ(kernels[0].name, "norm");
    EXPECT_EQ(kernels[0].launches, 3U);
    EXPECT_EQ(kernels[0].total, 90);
}

TEST(GpuProfiler, LaunchedStepsCountForTheWindows) {
    Recorder recorder;
    FakeSource::Log log;
    const base::MonotonicClock clock;
    GpuProfilerOptions options;
    options.full = true;
    options.windowSteps = 2;
    options.windowPeriod = 4;
    options.deviceCounters = false;
    GpuProfiler profiler(recorder, clock, options, std::make_unique<FakeSource>(log));
    kernels::RunTrace run(profiler);
    kernels::Tracer tracer(run, clock, kernels::ProfileLevel::Full, 0, true);
    tracer.beginStep("decode", 0, 1);
    tracer.endStep();
    for (int index = 1; index < 6; ++index) {
        tracer.endReplay(tracer.beginReplay(tracer.lastTemplate(), index));
    }
    profiler.finish();
    std::string seen;
    for (const TraceDetail detail : log.details) {
        seen += detail == TraceDetail::Everything ? 'x' : '.';
    }
    EXPECT_EQ(seen, "x" // before the first step
                    "xx..xx"
                    "."); // after the last
}

TEST(GpuProfiler, TimesAreOnTheRunsAxisAndRefusalsAreNotes) {
    Recorder recorder;
    FakeSource::Log log;
    const base::MonotonicClock clock;
    GpuProfiler profiler(recorder, clock, {}, std::make_unique<FakeSource>(log));
    log.launch("early", clock.start() - 100, clock.start() - 50);
    log.launch("later", clock.start() + 700, clock.start() + 900);
    profiler.finish();
    profiler.finish();
    const auto timeline = timelineOf(recorder);
    ASSERT_EQ(timeline->kernels().spans().size(), 2U);
    EXPECT_EQ(timeline->kernels().spans()[0].begin, 0);
    EXPECT_EQ(timeline->kernels().spans()[0].end, 0);
    EXPECT_EQ(timeline->kernels().spans()[1].begin, 700);
    EXPECT_EQ(timeline->kernels().spans()[1].end, 900);
    for (const std::string& note : profiler.notes()) {
        EXPECT_GT(note.size(), 20U) << note;
    }
}

TEST(GpuProfiler, TheEndOfLoadingWaitsForTheHardwareCounters) {
    Recorder recorder;
    FakeSource::Log log;
    const base::MonotonicClock clock;
    GpuProfiler profiler(recorder, clock, {}, std::make_unique<FakeSource>(log));
    kernels::RunTrace run(profiler);
    kernels::Tracer tracer(run, clock, kernels::ProfileLevel::Light);
    const auto refused = [&] {
        return std::ranges::any_of(profiler.notes(), [](const std::string& note) {
            return note.starts_with("no hardware counters in this run");
        });
    };
    {
        const kernels::TraceScope load(tracer, base::ScopeKind::Phase, "load");
        tracer.counter("reserved_bytes", 4096); // a context exists
    }
    // Without a device they are refused by then.
    EXPECT_EQ(refused(), kernels::cudaDevices().empty() || !whyNoCupti(true).empty());
    profiler.finish();
}

TEST(TraceWindow, FullLooksAtSomeStepsOfManyAndAtAllOthersThanDecode) {
    TraceWindow window(true, 2, 5);
    EXPECT_EQ(window.atStart(), TraceDetail::Everything);
    EXPECT_EQ(window.next("prefill"), TraceDetail::Everything);
    std::string seen;
    for (int step = 0; step < 12; ++step) {
        const TraceDetail detail = window.next("decode");
        seen += detail == TraceDetail::Everything ? 'x' : detail == TraceDetail::Graphs ? 'g' : '.';
    }
    EXPECT_EQ(seen, "xx...xx...xx");
    EXPECT_EQ(window.next("prefill"), TraceDetail::Everything);
    TraceWindow always(true, 20, 3);
    for (int step = 0; step < 50; ++step) {
        EXPECT_EQ(always.next("decode"), TraceDetail::Everything);
    }
}

TEST(KernelName, IsDemangledWithoutParameters) {
    EXPECT_EQ(kernelName("rms_norm_bf16"), "rms_norm_bf16");
    EXPECT_EQ(kernelName("_Z3addIfEvPT_S1_i"), "add<float>");
    EXPECT_EQ(kernelName("_ZN2ns4gemmEi"), "ns::gemm");
    EXPECT_EQ(kernelName("_Znot a name"), "_Znot a name");
    EXPECT_EQ(kernelName(""), "");
}

TEST(GpuCounters, AreWrittenWhereTheyChange) {
    Recorder recorder;
    GpuCounters counters(recorder);
    GpuReading reading;
    reading.power = 300;
    counters.write(reading, 10);
    counters.write(reading, 20);
    reading.power = 310;
    reading.temperature = 40;
    counters.write(reading, 30);
    const auto timeline = timelineOf(recorder);
    using Samples = std::vector<std::pair<base::TimeNs, double>>;
    EXPECT_EQ(timeline->counters().samples("gpu.power_w"), (Samples{{10, 300}, {30, 310}}));
    EXPECT_EQ(timeline->counters().samples("gpu.temperature_c"), (Samples{{30, 40}}));
    EXPECT_TRUE(timeline->counters().samples("gpu.energy_j").empty());
    EXPECT_EQ(clockReasonTexts(0x24), (std::vector<std::string>{"power limit", "too hot"}));
    EXPECT_TRUE(clockReasonTexts(0x1).empty()) << "idle is no reason";
}

TEST(UntrackedMemory, IsWhatGrowsBeyondTheReservations) {
    constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
    Recorder recorder;
    UntrackedMemory untracked(recorder);
    untracked.see(500 * kMiB, 500 * kMiB, 1);
    untracked.see(900 * kMiB, 900 * kMiB, 2); // the run reserved
    untracked.see(960 * kMiB, 900 * kMiB, 3); // for one reading only
    untracked.see(900 * kMiB, 900 * kMiB, 4);
    untracked.see(904 * kMiB, 900 * kMiB, 5); // small
    untracked.see(904 * kMiB, 900 * kMiB, 6);
    EXPECT_EQ(untracked.growth(), 0);
    untracked.see(1000 * kMiB, 900 * kMiB, 7);
    untracked.see(1000 * kMiB, 900 * kMiB, 8);
    EXPECT_EQ(untracked.growth(), static_cast<std::int64_t>(100 * kMiB));
    untracked.see(940 * kMiB, 900 * kMiB, 9);
    untracked.see(940 * kMiB, 900 * kMiB, 10);
    const auto timeline = timelineOf(recorder);
    const auto slot = static_cast<std::size_t>(base::MemoryCategory::Untracked);
    EXPECT_EQ(timeline->memory().at(7)[slot], 0U);
    EXPECT_EQ(timeline->memory().at(8)[slot], 100 * kMiB);
    EXPECT_EQ(timeline->memory().at(10)[slot], 40 * kMiB);
}

TEST(SoundShare, IsAShareOrNothing) {
    EXPECT_EQ(soundShare(0), 0);
    EXPECT_EQ(soundShare(0.25), 0.25);
    EXPECT_EQ(soundShare(1.02), 1) << "counters of one sample are not latched at one instant";
    EXPECT_TRUE(std::isnan(soundShare(17)));
    EXPECT_TRUE(std::isnan(soundShare(-1)));
    EXPECT_TRUE(std::isnan(soundShare(std::numeric_limits<double>::quiet_NaN())));
}

TEST(ClockFit, TakesTheClosestPair) {
    constexpr base::TimeNs kHour = 3'600'000'000'000;
    ClockFit fit;
    fit.see(1'000, kHour + 1'500); // seen 500 after it was over
    EXPECT_EQ(fit.hostTime(1'000), kHour + 1'500);
    fit.see(2'000, kHour + 2'020);
    fit.see(3'000, kHour + 3'900);
    EXPECT_EQ(fit.hostTime(3'000), kHour + 3'020);
    // The device's clock runs late: what is old is forgotten.
    for (std::uint64_t i = 0; i < 256; ++i) {
        fit.see(10'000 + i, static_cast<base::TimeNs>(kHour + 10'100 + i));
    }
    EXPECT_EQ(fit.hostTime(10'000), kHour + 10'100);
}

TEST(ClockFit, LeavesStampsThatAreOnTheHostsClockAlready) {
    ClockFit fit;
    fit.see(90'000'000'000, 90'000'700'000);
    fit.see(90'100'000'000, 90'100'020'000);
    EXPECT_EQ(fit.hostTime(90'050'000'000), 90'050'000'000);
}

} // namespace
} // namespace vitrine::profiler
