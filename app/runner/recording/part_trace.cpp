// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/part_trace.h"

#include <algorithm>
#include <new>
#include <utility>

#include "profiler/record/event_times.h"

namespace vitrine::app {
namespace {

/// Turns the numbers of the run into those of a part. What began before the part begins with it, but for what requests
/// did: how long they waited would be lost.
class Shift {
public:
    explicit Shift(const PartOrigin& origin) : origin_(origin) {}

    /// Events whose times alone count from the part's beginning. Templates have none of their own.
    template <class Event> void operator()(Event& event) const {
        if constexpr (requires { event.begin; }) {
            event.begin = time(event.begin);
            event.end = time(event.end);
        } else if constexpr (requires { event.time; }) {
            event.time = time(event.time);
        }
    }

    void operator()(base::ScopeBeginEvent& event) const {
        event.time = time(event.time);
        if (event.kind == base::ScopeKind::Step) {
            event.index = static_cast<std::int32_t>(std::max<std::int64_t>(event.index - origin_.step, 0));
        }
    }
    void operator()(base::TokenEvent& event) const {
        event.time = time(event.time);
        event.request = request(event.request);
    }
    void operator()(base::StepReplayedEvent& event) const {
        event.begin = time(event.begin);
        event.end = time(event.end);
        event.index = static_cast<std::int32_t>(std::max<std::int64_t>(event.index - origin_.step, 0));
    }
    void operator()(base::BatchStepEvent& event) const {
        event.begin = time(event.begin);
        event.end = time(event.end);
        event.index = std::max<std::int64_t>(event.index - origin_.step, 0);
    }
    void operator()(base::SlotSpanEvent& event) const {
        event.begin = time(event.begin);
        event.end = time(event.end);
        const std::int64_t before = std::clamp<std::int64_t>(origin_.step - event.firstStep, 0, event.steps - 1);
        event.firstStep = std::max<std::int64_t>(event.firstStep - origin_.step, 0);
        event.steps -= before;
        event.request = event.request < 0 ? -1 : request(event.request);
    }
    void operator()(base::RequestEvent& event) const {
        event.time -= origin_.time;
        event.request = request(event.request);
        event.step = std::max<std::int64_t>(event.step - origin_.step, -1);
    }

private:
    base::TimeNs time(base::TimeNs value) const { return std::max<base::TimeNs>(value - origin_.time, 0); }
    std::int32_t request(std::int32_t number) const { return std::max(number - origin_.request, 0); }

    PartOrigin origin_;
};

} // namespace

PartTrace::PartTrace(profiler::RecorderOptions options)
    : options_(std::move(options)), recorder_(std::make_shared<profiler::Recorder>(options_)) {}

base::StringId PartTrace::intern(std::string_view text) {
    const std::lock_guard lock(mutex_);
    const base::StringId id = recorder_->intern(text);
    if (id.value > names_.size()) {
        names_.emplace_back(text);
    }
    return id;
}

void PartTrace::record(const base::TraceEvent& event) {
    recorder()->waitForRoom();
    const std::lock_guard lock(mutex_);
    try {
        std::visit([this](const auto& value) { keep(value); }, event);
    } catch (const std::bad_alloc&) {
        ++notKept_; // the next part lacks it
    }
    latest_ = std::max(latest_, std::visit(profiler::EventEnd(), event));
    pass(event);
}

void PartTrace::pass(base::TraceEvent event) const {
    std::visit(Shift(origin_), event);
    recorder_->recordWithoutWaiting(event);
}

void PartTrace::keep(const base::AllocationEvent& event) {
    if (blocks_.birth(event.id, event)) {
        blocks_.unbirth(event.id); // its death was reported before
    }
}

void PartTrace::keep(const base::StepTemplateEvent& event) {
    if (event.step) {
        templates_[event.step->id] = event;
    }
}

void PartTrace::keep(const base::RequestEvent& event) {
    switch (event.phase) {
    case base::RequestChange::Arrived:
        underWay_[event.request] = {};
        requests_ = std::max(requests_, event.request + 1);
        break;
    case base::RequestChange::Finished:
    case base::RequestChange::Cancelled:
    case base::RequestChange::Refused:
        underWay_.erase(event.request);
        return;
    default:
        break;
    }
    const auto found = underWay_.find(event.request);
    if (found == underWay_.end()) {
        return;
    }
    if (event.phase == base::RequestChange::Preempted) {
        // Its sequence is another request's from now on.
        for (const base::RequestChange phase : {base::RequestChange::Admitted, base::RequestChange::Resumed}) {
            if (auto& held = found->second[static_cast<std::size_t>(phase)]; held) {
                held->sequence = -1;
            }
        }
    }
    found->second[static_cast<std::size_t>(event.phase)] = event;
}

void PartTrace::keep(const base::KvPageEvent& event) {
    const std::pair place{event.group, event.page};
    if (event.state == base::PageState::Free) {
        pages_.erase(place);
    } else {
        pages_[place] = event;
    }
}

std::shared_ptr<profiler::Recorder> PartTrace::recorder() const {
    const std::lock_guard lock(mutex_);
    return recorder_;
}

PartOrigin PartTrace::origin() const {
    const std::lock_guard lock(mutex_);
    return origin_;
}

std::uint64_t PartTrace::notKept() const {
    const std::lock_guard lock(mutex_);
    return notKept_;
}

void PartTrace::next() {
    const std::lock_guard lock(mutex_);
    auto recorder = std::make_shared<profiler::Recorder>(options_);
    // In the order of their ids, so that they get the same ones.
    for (const std::string& name : names_) {
        recorder->intern(name);
    }
    recorder_ = std::move(recorder);
    origin_ = {latest_, steps_, underWay_.empty() ? requests_ : underWay_.begin()->first};
    passAlive();
}

void PartTrace::passAlive() const {
    const auto passAll = [this](const auto& map) {
        for (const auto& [key, event] : map) {
            pass(event);
        }
    };
    passAll(templates_);
    blocks_.each([this](std::uint64_t, const base::AllocationEvent& event) { pass(event); });
    passAll(scopes_); // a scope has a higher number than the one it stands in
    passAll(counters_);
    passAll(pages_);
    for (const auto& [number, phases] : underWay_) {
        for (const std::optional<base::RequestEvent>& event : phases) {
            if (event) {
                pass(*event);
            }
        }
    }
}

} // namespace vitrine::app
