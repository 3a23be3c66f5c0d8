// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Makes the memory pyramids of a run from its events while it is recorded. Not thread-safe.

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "profiler/record/live_blocks.h"
#include "profiler/record/pyramid_writer.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

/// Follows the total of one device over all drained events, in the order of time, and makes pyramid nodes.
///
/// Records of one step may be written a little after later times (a step is reported when it ends), so events wait here
/// until one more drain has passed; what comes even later counts from the time at which the pyramid stands.
class PyramidFeed {
public:
    explicit PyramidFeed(base::DeviceRank device) : device_(device) {}

    void add(const EventBatch& batch) {
        for (const auto& step : batch.templates) {
            addTemplate(*step);
        }
        for (const auto& [order, event] : batch.allocations) {
            if (event.device == device_) {
                waiting_.push_back({event.time, order, event.id, stepOf(event)});
            }
        }
        for (const auto& [order, event] : batch.frees) {
            if (event.device == device_) {
                waiting_.push_back({event.time, order, event.id, kDeath});
            }
        }
        for (const auto& [order, event] : batch.replays) {
            if (event.device == device_) {
                expand(order, event);
            }
        }
    }

    /// Hands over the events up to `until`.
    void advance(base::TimeNs until) {
        std::stable_sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
            return a.time != b.time ? a.time < b.time : a.order < b.order;
        });
        const auto end = std::find_if(waiting_.begin(), waiting_.end(),
                                      [until](const Waiting& waiting) { return waiting.time > until; });
        for (auto it = waiting_.begin(); it != end; ++it) {
            apply(*it);
        }
        waiting_.erase(waiting_.begin(), end);
    }

    void finish() {
        advance(std::numeric_limits<base::TimeNs>::max());
        writer_.finish();
    }

    void encode(ChunkNumbers& numbers, std::vector<base::ColumnChunk>& out) {
        const std::vector<std::vector<PyramidNode>> levels = writer_.take();
        for (std::size_t level = 0; level < levels.size() && level < kMaxPyramidLevels; ++level) {
            encodePyramid(levels[level], static_cast<int>(level), device_, numbers, out);
        }
    }

private:
    struct Waiting {
        base::TimeNs time = 0;
        std::uint64_t order = 0, id = 0;
        MemoryChange step;
    };
    struct Step {
        base::TimeNs duration = 0;
        std::vector<TemplateMemory> memory;
        std::vector<MemoryChange> births;
    };
    static inline const MemoryChange kDeath{0, base::MemorySpace::Device, {}, true};

    static MemoryChange stepOf(const base::AllocationEvent& event) {
        return {event.bytes, event.space, event.category, false};
    }

    void addTemplate(const base::StepTemplate& step) {
        Step& known = steps_[step.id];
        known = {step.duration, {}, {}};
        known.memory = memoryOf(step, [&known](const base::AllocationEvent& event) {
            known.births.push_back(stepOf(event));
            return static_cast<std::uint32_t>(known.births.size() - 1);
        });
    }

    void expand(std::uint64_t order, const base::StepReplayedEvent& event) {
        const auto found = steps_.find(event.stepTemplate);
        if (found == steps_.end()) {
            return;
        }
        const Step& step = found->second;
        expandMemory(step.memory, step.duration, event.begin, event.end, event.firstId,
                     [&](base::TimeNs time, std::uint64_t id, const TemplateMemory& item) {
                         waiting_.push_back({time, order, id, item.death ? kDeath : step.births[item.block]});
                     });
    }

    void apply(const Waiting& waiting) {
        time_ = std::max(time_, waiting.time);
        if (waiting.step.death()) {
            if (const auto block = alive_.death(waiting.id, kDeath)) {
                die(*block);
            }
            return;
        }
        writer_.add(time_, waiting.step);
        if (alive_.birth(waiting.id, waiting.step)) {
            alive_.unbirth(waiting.id); // its death was reported before
            die(waiting.step);
        }
    }

    void die(MemoryChange block) {
        writer_.add(time_, MemoryChange(block.bytes(), block.space(),
                                        static_cast<base::MemoryCategory>(block.category()), true));
    }

    base::DeviceRank device_;
    PyramidWriter writer_;
    LiveBlocks<MemoryChange, MemoryChange> alive_;
    std::vector<Waiting> waiting_;
    std::unordered_map<std::uint32_t, Step> steps_;
    base::TimeNs time_ = 0;
};

/// The pyramids of all devices of a run.
class PyramidFeeds {
public:
    void add(const EventBatch& batch) {
        for (const auto& step : batch.templates) {
            templates_.push_back(step);
        }
        for (const auto& [order, event] : batch.allocations) {
            of(event.device);
        }
        for (const auto& [order, event] : batch.replays) {
            of(event.device);
        }
        for (auto& [device, feed] : feeds_) {
            feed.add(batch);
        }
    }
    void advance(base::TimeNs until) {
        for (auto& [device, feed] : feeds_) {
            feed.advance(until);
        }
    }
    void finish() {
        for (auto& [device, feed] : feeds_) {
            feed.finish();
        }
    }
    void encode(ChunkNumbers& numbers, std::vector<base::ColumnChunk>& out) {
        for (auto& [device, feed] : feeds_) {
            feed.encode(numbers, out);
        }
    }

private:
    /// A device that is new gets a feed that knows the templates of the run.
    void of(base::DeviceRank device) {
        const auto [feed, isNew] = feeds_.try_emplace(device, device);
        if (isNew) {
            EventBatch known;
            known.templates = templates_;
            feed->second.add(known);
        }
    }

    std::vector<std::shared_ptr<const base::StepTemplate>> templates_;
    std::map<base::DeviceRank, PyramidFeed> feeds_;
};

} // namespace vitrine::profiler
