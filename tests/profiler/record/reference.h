// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Random runs and the plainest possible answers about them, to hold the timeline against.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "base/trace.h"
#include "profiler/record/recorder.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler::testing {

struct RandomRun {
    std::vector<base::TraceEvent> events; ///< in the order of recording
};

struct RunShape {
    int steps = 400;
    bool replays = true;
    bool hostMemory = true;
    bool lateRecords = true; ///< some records are written later than others with later times
};

/// A block with a few possible values in every field, so that some are equal.
inline base::AllocationEvent randomBlock(std::mt19937_64& random, const RunShape& shape, std::uint64_t id) {
    const auto pick = [&](std::uint64_t below) { return random() % below; };
    base::AllocationEvent event;
    event.id = id;
    event.address = (pick(3) << 40) + pick(64) * 4096;
    event.bytes = pick(8) == 0 ? 0 : pick(pick(4) == 0 ? 1'000'000 : 3000);
    event.scope.value = pick(4);
    event.name.value = static_cast<std::uint32_t>(pick(5));
    event.category = static_cast<base::MemoryCategory>(pick(base::kCategoryCount));
    event.space =
        shape.hostMemory && pick(6) == 0 ? static_cast<base::MemorySpace>(1 + pick(2)) : base::MemorySpace::Device;
    event.dtype = static_cast<std::uint8_t>(pick(4));
    event.format.value = static_cast<std::uint32_t>(pick(3));
    event.dimensions = static_cast<std::uint8_t>(pick(base::kMaxTraceDimensions + 1));
    for (std::size_t axis = 0; axis < event.dimensions; ++axis) {
        event.shape[axis] = static_cast<std::int64_t>(pick(100));
    }
    return event;
}

/// Births, deaths and replayed steps with equal times, zero bytes, blocks that are never freed and reused addresses.
inline RandomRun makeRun(std::uint64_t seed, const RunShape& shape = {}) {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::uint64_t below) { return random() % below; };
    RandomRun run;
    std::vector<std::shared_ptr<const base::StepTemplate>> templates;
    std::vector<std::uint64_t> alive;
    std::uint64_t nextId = 1;
    base::TimeNs time = 0;
    const auto block = [&](std::uint64_t id) { return randomBlock(random, shape, id); };
    for (int step = 0; step < shape.steps; ++step) {
        time += static_cast<base::TimeNs>(pick(3) == 0 ? 0 : pick(50));
        const std::uint64_t what = pick(20);
        if (what < 10 || alive.empty()) {
            base::AllocationEvent event = block(nextId);
            event.time = time;
            alive.push_back(nextId++);
            run.events.emplace_back(event);
        } else if (what < 18 || !shape.replays) {
            const std::size_t victim = pick(alive.size());
            run.events.emplace_back(base::FreeEvent{time, alive[victim]});
            alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(victim));
        } else if (templates.empty() || pick(5) == 0) {
            auto made = std::make_shared<base::StepTemplate>();
            made->id = static_cast<std::uint32_t>(templates.size());
            made->duration = static_cast<base::TimeNs>(pick(200));
            std::vector<std::pair<base::TimeNs, std::uint64_t>> open;
            const std::uint64_t blocks = 1 + pick(9);
            base::TimeNs inside = 0;
            for (std::uint64_t i = 0; i < blocks; ++i) {
                inside = std::min(made->duration, inside + static_cast<base::TimeNs>(pick(20)));
                base::AllocationEvent event = block(i + 1);
                event.time = inside;
                made->events.emplace_back(event);
                open.emplace_back(inside, i + 1);
                if (pick(2) == 0) {
                    made->events.emplace_back(base::FreeEvent{inside, open.back().second});
                    open.pop_back();
                }
            }
            for (const auto& [born, id] : open) {
                made->events.emplace_back(base::FreeEvent{made->duration, id});
            }
            made->idCount = blocks + 1;
            run.events.emplace_back(base::StepTemplateEvent{made});
            templates.push_back(made);
        } else {
            const auto& used = templates[pick(templates.size())];
            base::StepReplayedEvent event;
            event.begin = time;
            event.end = time + static_cast<base::TimeNs>(pick(400));
            event.stepTemplate = used->id;
            event.firstId = nextId;
            event.index = step;
            nextId += used->idCount;
            const bool outliving = pick(2) == 0;
            if (outliving && shape.lateRecords) {
                base::AllocationEvent kept = block(nextId);
                kept.time = event.begin + (event.end - event.begin) / 2;
                alive.push_back(nextId++);
                run.events.emplace_back(kept);
            }
            run.events.emplace_back(event);
            // A death may not come before the birth inside the step, so time moves on when something outlives it.
            time = pick(4) == 0 && shape.lateRecords && !outliving ? time : event.end;
        }
    }
    return run;
}

/// One block in the reference.
struct ReferenceBlock {
    base::AllocationEvent event;
    base::TimeNs freed = -1;
};

struct ReferenceEvent {
    base::TimeNs time = 0;
    std::size_t order = 0;
    std::uint64_t id = 0;
    bool death = false;
};

/// All events one after the other, and answers by walking over them.
class Reference {
public:
    explicit Reference(const RandomRun& run) {
        std::map<std::uint32_t, std::shared_ptr<const base::StepTemplate>> templates;
        for (std::size_t i = 0; i < run.events.size(); ++i) {
            const base::TraceEvent& event = run.events[i];
            if (const auto* birth = std::get_if<base::AllocationEvent>(&event)) {
                birthOf(*birth, i);
            } else if (const auto* death = std::get_if<base::FreeEvent>(&event)) {
                deathOf(*death, i);
            } else if (const auto* made = std::get_if<base::StepTemplateEvent>(&event)) {
                templates[made->step->id] = made->step;
            } else if (const auto* replay = std::get_if<base::StepReplayedEvent>(&event)) {
                expand(*replay, *templates.at(replay->stepTemplate), i);
            }
        }
        std::stable_sort(events.begin(), events.end(), [](const ReferenceEvent& a, const ReferenceEvent& b) {
            return a.time != b.time ? a.time < b.time : a.order < b.order;
        });
    }

    /// States after each event; index 0 is the empty state.
    std::vector<base::CategoryBytes> states(bool device) const {
        std::vector<base::CategoryBytes> out(1);
        for (const ReferenceEvent& event : events) {
            base::CategoryBytes next = out.back();
            const base::AllocationEvent& block = blocks.at(event.id).event;
            if ((block.space == base::MemorySpace::Device) == device) {
                std::uint64_t& bytes = next[static_cast<std::size_t>(block.category)];
                bytes += event.death ? std::uint64_t{0} - block.bytes : block.bytes;
            }
            out.push_back(next);
        }
        return out;
    }

    static std::uint64_t total(const base::CategoryBytes& bytes) {
        std::uint64_t sum = 0;
        for (const std::uint64_t part : bytes) {
            sum += part;
        }
        return sum;
    }

    MemoryColumn window(const std::vector<base::CategoryBytes>& state, base::TimeNs begin, base::TimeNs end) const {
        MemoryColumn column;
        bool any = false;
        const auto show = [&](const base::CategoryBytes& bytes, base::TimeNs time) {
            const std::uint64_t sum = total(bytes);
            column.minTotal = any ? std::min(column.minTotal, sum) : sum;
            if (!any || sum > column.maxTotal) {
                column.maxTotal = sum;
                column.maxTime = time;
                column.atMax = bytes;
            }
            any = true;
        };
        std::size_t first = 0;
        while (first < events.size() && events[first].time < begin) {
            ++first;
        }
        if (first == events.size() || events[first].time > begin || begin >= end) {
            show(state[first], begin);
        }
        for (std::size_t i = first; i < events.size() && events[i].time < end; ++i) {
            show(state[i + 1], events[i].time);
            ++column.events;
        }
        return column;
    }

    RangeTotals totals(const std::vector<base::CategoryBytes>& state, base::TimeNs begin, base::TimeNs end) const {
        RangeTotals sums;
        base::TimeNs time = begin;
        std::uint64_t held = total(state[0]);
        for (std::size_t i = 0; i < events.size() && events[i].time < end; ++i) {
            if (events[i].time >= begin) {
                sums.byteNs += static_cast<double>(held) * static_cast<double>(events[i].time - time);
                time = events[i].time;
                const bool device = blocks.at(events[i].id).event.space == base::MemorySpace::Device;
                sums.births += device && !events[i].death ? 1 : 0;
                sums.deaths += device && events[i].death ? 1 : 0;
            }
            held = total(state[i + 1]);
        }
        sums.byteNs += static_cast<double>(held) * static_cast<double>(end - time);
        return sums;
    }

    std::vector<ReferenceEvent> events;
    std::map<std::uint64_t, ReferenceBlock> blocks;

private:
    void birthOf(const base::AllocationEvent& event, std::size_t order) {
        blocks[event.id].event = event;
        events.push_back({event.time, order, event.id, false});
    }
    void deathOf(const base::FreeEvent& event, std::size_t order) {
        blocks[event.id].freed = event.time;
        events.push_back({event.time, order, event.id, true});
    }
    void expand(const base::StepReplayedEvent& replay, const base::StepTemplate& step, std::size_t order) {
        const auto at = [&](base::TimeNs time) {
            return step.duration == 0 ? replay.begin
                                      : replay.begin + time * (replay.end - replay.begin) / step.duration;
        };
        for (const base::TraceEvent& inside : step.events) {
            if (const auto* birth = std::get_if<base::AllocationEvent>(&inside)) {
                base::AllocationEvent event = *birth;
                event.time = at(birth->time);
                event.id += replay.firstId;
                event.scope.value += replay.firstId;
                birthOf(event, order);
            } else if (const auto* death = std::get_if<base::FreeEvent>(&inside)) {
                deathOf({at(death->time), death->id + replay.firstId}, order);
            }
        }
    }
};

/// Records a run, draining now and then.
inline std::vector<base::ColumnChunk> record(const RandomRun& run, std::uint64_t seed, std::uint64_t drainEvery = 60) {
    std::mt19937_64 random(seed);
    Recorder recorder;
    for (const char* name : {"a", "b", "c", "d"}) {
        recorder.intern(name);
    }
    std::vector<base::ColumnChunk> chunks;
    const auto keep = [&](std::vector<base::ColumnChunk> some) {
        std::move(some.begin(), some.end(), std::back_inserter(chunks));
    };
    for (const base::TraceEvent& event : run.events) {
        recorder.record(event);
        if (random() % drainEvery == 0) {
            keep(recorder.drain());
        }
    }
    keep(recorder.finish());
    return chunks;
}

} // namespace vitrine::profiler::testing
