// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/gpu_profiler.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "profiler/gpu/gpu_counters.h"
#include "profiler/gpu/nvml_monitor.h"
#include "profiler/gpu/pm_sampling.h"
#include "profiler/gpu/trace_window.h"
#include "profiler/gpu/work_writer.h"

namespace vitrine::profiler {

namespace {

constexpr std::chrono::milliseconds kPeriod{100};
constexpr std::chrono::milliseconds kSamplerPeriod{50};
constexpr std::chrono::milliseconds kReadyPoll{5};
constexpr int kReadyPolls = 400;

} // namespace

struct GpuProfiler::State {
    State(base::TraceSink& nextSink, const base::MonotonicClock& runClock, const GpuProfilerOptions& given)
        : next(nextSink), clock(runClock), options(given), window(given.full, given.windowSteps, given.windowPeriod),
          writer(nextSink, runClock.start()), counters(nextSink), untracked(nextSink) {}

    base::TraceSink& next;
    const base::MonotonicClock& clock;
    const GpuProfilerOptions options;
    TraceWindow window; ///< the engine's thread
    std::unique_ptr<WorkSource> source;
    base::StringId reservedName;
    std::atomic<std::uint64_t> firstPhase = 0; ///< the scope in which weights come

    std::atomic<bool> contextExists = false;
    std::atomic<bool> samplerTried = false;
    std::atomic<std::uint64_t> reserved = 0;
    std::atomic<std::uint64_t> lostSamples = 0;

    mutable std::mutex mutex; // guards what follows up to the thread
    std::condition_variable wake;
    bool stopping = false;
    std::vector<std::string> notes;
    std::thread thread, samplerThread;
    bool finished = false;

    // The first thread's own.
    WorkWriter writer;
    base::TimeNs collected = 0; ///< when the source was asked last
    std::uint64_t lostWork = 0; ///< records of the source that are marked as lost in the run's timeline
    GpuCounters counters;
    UntrackedMemory untracked;
    std::unique_ptr<NvmlMonitor> monitor;
    // The second thread's own: decoding samples takes up to 60 us each.
    std::unique_ptr<CounterSampler> sampler;

    bool ready() const { return !options.deviceCounters || !contextExists || samplerTried; }
    void waitUntilReady() const;
    void note(std::string text);
    void collect(bool last);
    void startSampler();
    void readMonitor();
    void sample();
    template <class Work> void loop(std::chrono::milliseconds period, Work work);
};

void GpuProfiler::State::note(std::string text) {
    base::logWarning(text);
    const std::lock_guard lock(mutex);
    notes.push_back(std::move(text));
}

/// Two seconds at most.
void GpuProfiler::State::waitUntilReady() const {
    for (int i = 0; i < kReadyPolls && !ready(); ++i) {
        std::this_thread::sleep_for(kReadyPoll);
    }
}

void GpuProfiler::State::collect(bool last) {
    if (source != nullptr) {
        source->collect(last, [this](const DeviceWork& work) { writer.add(work); });
        writer.write(source->launches(), last);
        const base::TimeNs now = clock.now();
        if (const std::uint64_t lost = source->lost(); lost > lostWork) {
            next.record(base::GapEvent{collected, now, lost - std::exchange(lostWork, lost), 0});
        }
        collected = now;
    }
}

void GpuProfiler::State::startSampler() {
    std::string why;
    sampler = openCounterSampler(options.device, options.counterInterval, why);
    if (sampler == nullptr) {
        note(fmt::format("no hardware counters in this run: {}", why));
    }
}

void GpuProfiler::State::readMonitor() {
    if (monitor == nullptr) {
        return;
    }
    const std::uint64_t before = reserved;
    const GpuReading reading = monitor->read();
    const base::TimeNs time = clock.now();
    counters.write(reading, time);
    // Others' memory comes and goes; this process's own is what the run is about, where the driver says it.
    const std::optional<std::uint64_t> used = reading.memoryProcess ? reading.memoryProcess : reading.memoryUsed;
    if (used && contextExists && before == reserved) {
        untracked.see(*used, before, time);
    }
}

void GpuProfiler::State::sample() {
    if (sampler == nullptr) {
        return;
    }
    sampler->collect([this](const CounterSampleRow& row) {
        const base::TimeNs time = std::max<base::TimeNs>(0, row.begin - clock.start());
        for (int i = 0; i < kDeviceCounters; ++i) {
            const double value = row.values[static_cast<std::size_t>(i)];
            if (std::isfinite(value)) {
                next.record(base::CounterEvent{time, next.intern(counterName(static_cast<DeviceCounter>(i))), value});
            }
        }
    });
    lostSamples = sampler->lost();
}

/// Every period until the end; what it throws is reported.
template <class Work> void GpuProfiler::State::loop(std::chrono::milliseconds period, Work work) {
    std::unique_lock lock(mutex);
    while (!stopping) {
        wake.wait_for(lock, period, [this] { return stopping; });
        lock.unlock();
        try {
            work();
        } catch (const std::exception& error) {
            base::logWarning(fmt::format("profiling of the GPU: {}", error.what()));
        }
        lock.lock();
    }
}

GpuProfiler::GpuProfiler(base::TraceSink& next, const base::MonotonicClock& clock, const GpuProfilerOptions& options,
                         std::unique_ptr<WorkSource> source)
    : state_(std::make_unique<State>(next, clock, options)) {
    State& state = *state_;
    state.reservedName = next.intern("reserved_bytes");
    std::string why;
    state.source = source != nullptr ? std::move(source) : openCupti(why);
    if (state.source == nullptr) {
        state.note(fmt::format("no device times of kernels in this run: {}", why));
    } else {
        state.source->setDetail(state.window.atStart());
    }
    state.monitor = NvmlMonitor::open(options.pciBusId, why);
    if (state.monitor == nullptr) {
        state.note(fmt::format("no power, clocks and memory of the device in this run: {}", why));
    }
    state.thread = std::thread([&state] {
        state.loop(kPeriod, [&state] {
            state.readMonitor();
            state.collect(false);
        });
    });
    if (options.deviceCounters) {
        state.samplerThread = std::thread([&state] {
            state.loop(kSamplerPeriod, [&state] {
                if (state.contextExists && !state.samplerTried) {
                    state.startSampler();
                    state.samplerTried = true;
                }
                state.sample();
            });
        });
    }
}

GpuProfiler::~GpuProfiler() {
    finish();
}

base::StringId GpuProfiler::intern(std::string_view text) {
    return state_->next.intern(text);
}

void GpuProfiler::record(const base::TraceEvent& event) {
    if (const auto* counter = std::get_if<base::CounterEvent>(&event);
        counter != nullptr && counter->name == state_->reservedName) {
        state_->reserved = counter->value > 0 ? static_cast<std::uint64_t>(counter->value) : 0;
        state_->contextExists = true; // the first reservation is made in it
    }
    if (const auto* begin = std::get_if<base::ScopeBeginEvent>(&event);
        begin != nullptr && begin->kind == base::ScopeKind::Phase && state_->firstPhase == 0) {
        state_->firstPhase = begin->id.value;
    }
    state_->next.record(event);
    if (const auto* end = std::get_if<base::ScopeEndEvent>(&event);
        end != nullptr && end->id.value != 0 && end->id.value == state_->firstPhase) {
        state_->waitUntilReady();
    }
}

void GpuProfiler::stepBegins(std::string_view name, base::ScopeId step) {
    if (state_->source != nullptr) {
        state_->source->launches().stepBegins(step);
        state_->source->setDetail(state_->window.next(name));
    }
    state_->next.stepBegins(name, step);
}

void GpuProfiler::stepEnded(base::ScopeId step, std::span<const base::StepScope> scopes) {
    if (state_->source != nullptr) {
        state_->source->launches().stepEnded(step, scopes);
    }
    state_->next.stepEnded(step, scopes);
}

void GpuProfiler::replayBegins(std::string_view name, base::ScopeId step) {
    if (state_->source != nullptr) {
        state_->source->setDetail(state_->window.next(name));
    }
    state_->next.replayBegins(name, step);
}

void GpuProfiler::waitUntilReady() const {
    state_->waitUntilReady();
}

void GpuProfiler::finish() {
    State& state = *state_;
    if (std::exchange(state.finished, true)) {
        return;
    }
    {
        const std::lock_guard lock(state.mutex);
        state.stopping = true;
    }
    state.wake.notify_all();
    state.thread.join();
    if (state.samplerThread.joinable()) {
        state.samplerThread.join();
    }
    try {
        state.readMonitor();
        state.sample();
        state.sampler.reset();
        if (state.source != nullptr) {
            state.source->setDetail(TraceDetail::Nothing);
            state.collect(true);
        }
        if (const std::uint64_t lost = state.source == nullptr ? 0 : state.source->lost(); lost > 0) {
            state.note(fmt::format("{} records of the device's work were dropped or have no time", lost));
        }
        if (state.lostSamples > 0) {
            state.note(fmt::format("samples of the hardware counters were dropped {} times; sample less often "
                                   "(profile_counters)",
                                   state.lostSamples.load()));
        }
    } catch (const std::exception& error) {
        base::logWarning(fmt::format("profiling of the GPU: {}", error.what()));
    }
}

std::vector<std::string> GpuProfiler::notes() const {
    const std::lock_guard lock(state_->mutex);
    return state_->notes;
}

std::uint64_t GpuProfiler::lostRecords() const {
    return (state_->source == nullptr ? 0 : state_->source->lost()) + state_->lostSamples;
}

std::vector<KernelSummary> GpuProfiler::kernels() const {
    return state_->writer.kernels();
}

} // namespace vitrine::profiler
