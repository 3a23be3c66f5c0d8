// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A trace in parts: the events of a run go to one recorder after the other, and each of them holds what a run of its
// own would have reported. A part begins with what is alive then (names, templates, allocations, open scopes, counters,
// pages, requests under way), and its times, steps and requests count from its beginning. Of requests under way it
// knows when they arrived, were admitted, got their first token, lost their place and got it back, at times below 0:
// their latencies are those of the run.
//
// record() may be called from any thread, as that of every sink; it waits where the recorders wait for a drain, without
// holding a lock. What is alive is kept in the memory of the process: some hundred bytes for each block, page and
// request.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "profiler/record/live_blocks.h"
#include "profiler/record/recorder.h"

namespace vitrine::app {

/// Where a part begins: the time, step and request of the run at which its own numbers begin.
struct PartOrigin {
    base::TimeNs time = 0;
    std::int64_t step = 0;
    std::int32_t request = 0;
};

class PartTrace final : public base::TraceSink {
public:
    /// `options`: of each part's recorder.
    explicit PartTrace(profiler::RecorderOptions options = {});

    base::StringId intern(std::string_view text) override;
    void record(const base::TraceEvent& event) override;

    /// Of the part that gets events now.
    std::shared_ptr<profiler::Recorder> recorder() const;
    PartOrigin origin() const;
    /// Begins the next part. The recorder of the part before gets no more events.
    void next();
    /// The number of events that later parts lack because there was no memory to keep them.
    std::uint64_t notKept() const;

private:
    /// The last event of each phase that a request under way has come to.
    using Request = std::array<std::optional<base::RequestEvent>, base::kRequestChangeCount>;

    void keep(const base::AllocationEvent& event);
    void keep(const base::FreeEvent& event) { blocks_.death(event.id, event); }
    void keep(const base::ScopeBeginEvent& event) { scopes_[event.id.value] = event; }
    void keep(const base::ScopeEndEvent& event) { scopes_.erase(event.id.value); }
    void keep(const base::CounterEvent& event) { counters_[event.name.value] = event; }
    void keep(const base::StepTemplateEvent& event);
    void keep(const base::BatchStepEvent& event) { steps_ = event.index + 1; }
    void keep(const base::RequestEvent& event);
    void keep(const base::KvPageEvent& event);
    template <class Other> void keep(const Other&) {} ///< what stands for itself
    void pass(base::TraceEvent event) const;
    void passAlive() const;

    const profiler::RecorderOptions options_;
    mutable std::mutex mutex_; ///< guards what follows
    std::shared_ptr<profiler::Recorder> recorder_;
    PartOrigin origin_;
    base::TimeNs latest_ = 0;
    std::int64_t steps_ = 0;
    std::int32_t requests_ = 0;
    std::uint64_t notKept_ = 0;
    std::vector<std::string> names_; ///< by id, from 1
    profiler::LiveBlocks<base::AllocationEvent, base::FreeEvent> blocks_;
    std::map<std::uint64_t, base::ScopeBeginEvent> scopes_;
    std::map<std::uint32_t, base::CounterEvent> counters_;
    std::map<std::uint32_t, base::StepTemplateEvent> templates_;
    std::map<std::pair<std::int32_t, std::int32_t>, base::KvPageEvent> pages_;
    std::map<std::int32_t, Request> underWay_;
};

} // namespace vitrine::app
