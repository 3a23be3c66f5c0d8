// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/record/recorder.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "profiler/record/event_times.h"
#include "profiler/record/pyramid_feed.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

constexpr std::size_t kMaxNames = 1'000'000;
constexpr std::size_t kMaxNameBytes = 4096;

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

/// Events that only take back what others began. Dropping them would leave blocks and scopes open for ever, so they
/// have room of their own.
template <class Event>
constexpr bool kEnds = std::is_same_v<Event, base::FreeEvent> || std::is_same_v<Event, base::ScopeEndEvent> ||
                       std::is_same_v<Event, base::OutOfMemoryEvent>;

/// Events that change the totals of memory.
template <class Event>
constexpr bool kMemory = std::is_same_v<Event, base::AllocationEvent> || std::is_same_v<Event, base::FreeEvent> ||
                         std::is_same_v<Event, base::StepReplayedEvent>;

/// What a reader accepts.
template <class Event> bool isSound(const Event&) {
    return true;
}

bool isSound(const base::AllocationEvent& event) {
    return event.bytes <= kMaxBlockBytes && event.dimensions <= base::kMaxTraceDimensions &&
           event.address <= std::numeric_limits<std::uint64_t>::max() - event.bytes;
}

bool isSound(const base::StepTemplate& step) {
    return step.events.size() < base::kMaxChunkRows &&
           std::ranges::all_of(
               step.events,
               [](const base::TraceEvent& event) {
                   const auto* const birth = std::get_if<base::AllocationEvent>(&event);
                   return birth != nullptr ? isSound(*birth)
                                           : std::holds_alternative<base::FreeEvent>(event) ||
                                                 std::holds_alternative<base::ScopeBeginEvent>(event) ||
                                                 std::holds_alternative<base::ScopeEndEvent>(event) ||
                                                 std::holds_alternative<base::SpanEvent>(event);
               });
}

bool isSound(const base::StepTemplateEvent& event) {
    return event.step && isSound(*event.step);
}

bool isSound(const base::StepReplayedEvent& event) {
    return event.begin <= event.end;
}

} // namespace

struct Recorder::State {
    explicit State(RecorderOptions recorderOptions)
        : options(std::move(recorderOptions)), waits(options.drainSoon != nullptr) {}

    const RecorderOptions options;

    // Guards everything down to `gap`; held for one push or one swap.
    std::mutex mutex;
    std::condition_variable drained; ///< there is room, or waiting has ended
    bool waits;                      ///< record() waits for room
    std::thread::id drainer;         ///< the thread that drained last
    EventBatch batch;
    std::size_t waiting = 0; ///< records in `batch`
    std::uint64_t order = 0;
    TimeNs latest = 0;
    base::GapEvent gap; ///< what was dropped since the last drain

    std::mutex namesMutex;
    std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> names;
    std::vector<EventBatch::Text> newNames;

    std::atomic<std::uint64_t> events{0};
    std::atomic<std::uint64_t> lost{0};

    // Belongs to drain().
    std::mutex drainMutex;
    EventBatch draining;
    ChunkNumbers numbers;
    PyramidFeeds pyramid;
    TimeNs settled = 0; ///< latest time of the drain before

    void put(const base::AllocationEvent& event) { batch.allocations.push_back({order++, event}), see(event.time); }
    void put(const base::FreeEvent& event) { batch.frees.push_back({order++, event}), see(event.time); }
    void put(const base::ScopeBeginEvent& event) { batch.scopeBegins.push_back(event); }
    void put(const base::ScopeEndEvent& event) { batch.scopeEnds.push_back(event); }
    void put(const base::SpanEvent& event) { batch.spans.push_back(event); }
    void put(const base::CounterEvent& event) { batch.counters.push_back(event); }
    void put(const base::TokenEvent& event) { batch.tokens.push_back(event); }
    void put(const base::OutOfMemoryEvent& event) { batch.outOfMemory.push_back({order, event}); }
    void put(const base::StepTemplateEvent& event) { batch.templates.push_back(event.step); }
    void put(const base::StepReplayedEvent& event) { batch.replays.push_back({order++, event}), see(event.end); }
    template <class Event> void put(const Event& event) { batch.of<Event>().push_back(event); }
    void see(TimeNs time) { latest = std::max(latest, time); }

    template <class Event> bool hasRoom() const {
        if (waits || std::is_same_v<Event, base::StepTemplateEvent>) {
            return true; // a template is reported once and needed by all of its replays
        }
        return waiting < (kEnds<Event> ? 2 * options.maxWaiting : options.maxWaiting);
    }

    /// `lock` holds `mutex`.
    void waitForRoom(std::unique_lock<std::mutex>& lock) {
        const auto roomy = [this] {
            return !waits || waiting < options.maxWaiting || drainer == std::this_thread::get_id();
        };
        if (roomy()) {
            return;
        }
        lock.unlock();
        options.drainSoon();
        lock.lock();
        drained.wait(lock, roomy);
    }

    template <class Event> void lose(const Event& event) {
        lost.fetch_add(1, std::memory_order_relaxed); // a statistic: orders nothing
        const TimeNs begin = EventBegin()(event);
        const TimeNs end = EventEnd()(event);
        gap.begin = gap.records == 0 ? begin : std::min(gap.begin, begin);
        gap.end = gap.records == 0 ? end : std::max(gap.end, end);
        ++gap.records;
        gap.memoryRecords += kMemory<Event> ? 1 : 0;
    }

    /// Under `mutex`.
    template <class Event> void take(const Event& event) {
        if (!isSound(event)) {
            lost.fetch_add(1, std::memory_order_relaxed); // as above
            return;
        }
        if (!hasRoom<Event>()) {
            lose(event);
            return;
        }
        try {
            put(event);
        } catch (const std::bad_alloc&) {
            lose(event);
            return;
        }
        ++waiting;
        events.fetch_add(1, std::memory_order_relaxed); // as above
    }
};

Recorder::Recorder(const RecorderOptions& options) : state_(std::make_unique<State>(options)) {}
Recorder::Recorder() : Recorder(RecorderOptions{}) {}
Recorder::~Recorder() = default;

base::StringId Recorder::intern(std::string_view text) {
    if (text.empty()) {
        return {};
    }
    text = text.substr(0, kMaxNameBytes);
    State& state = *state_;
    const std::lock_guard lock(state.namesMutex);
    if (const auto known = state.names.find(text); known != state.names.end()) {
        return base::StringId{known->second};
    }
    if (state.names.size() >= kMaxNames) {
        state.lost.fetch_add(1, std::memory_order_relaxed); // a statistic: orders nothing
        return {};
    }
    const auto id = static_cast<std::uint32_t>(state.names.size() + 1);
    state.names.emplace(std::string(text), id);
    state.newNames.push_back({id, std::string(text)});
    return base::StringId{id};
}

void Recorder::record(const base::TraceEvent& event) {
    State& state = *state_;
    std::unique_lock lock(state.mutex);
    state.waitForRoom(lock);
    std::visit([&state](const auto& value) { state.take(value); }, event);
}

void Recorder::waitForRoom() {
    std::unique_lock lock(state_->mutex);
    state_->waitForRoom(lock);
}

void Recorder::recordWithoutWaiting(const base::TraceEvent& event) {
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    std::visit([&state](const auto& value) { state.take(value); }, event);
}

void Recorder::stopWaiting() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->waits = false;
    }
    state_->drained.notify_all();
}

std::vector<base::ColumnChunk> Recorder::drain() {
    return take(false);
}

std::vector<base::ColumnChunk> Recorder::finish() {
    stopWaiting();
    return take(true);
}

std::vector<base::ColumnChunk> Recorder::take(bool last) {
    State& state = *state_;
    const std::lock_guard drainLock(state.drainMutex);
    TimeNs latest = 0;
    {
        const std::lock_guard lock(state.mutex);
        std::swap(state.batch, state.draining);
        state.waiting = 0;
        state.drainer = std::this_thread::get_id();
        latest = state.latest;
        if (const base::GapEvent gap = std::exchange(state.gap, {}); gap.records > 0) {
            state.draining.of<base::GapEvent>().push_back(gap);
        }
    }
    state.drained.notify_all();
    {
        // After the events: every name that they use is known by now.
        const std::lock_guard lock(state.namesMutex);
        state.draining.strings.swap(state.newNames);
    }
    std::vector<base::ColumnChunk> chunks = encodeBatch(state.draining, state.numbers);
    state.pyramid.add(state.draining);
    if (last) {
        state.pyramid.finish();
    } else {
        state.pyramid.advance(state.settled);
    }
    state.settled = latest;
    state.pyramid.encode(state.numbers, chunks);
    state.draining.clear();
    return chunks;
}

std::uint64_t Recorder::events() const {
    return state_->events.load(std::memory_order_relaxed);
}

std::uint64_t Recorder::lostRecords() const {
    return state_->lost.load(std::memory_order_relaxed);
}

} // namespace vitrine::profiler
