// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/kv_pool_steps.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/page_facet.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/token_facet.h"

namespace vitrine::profiler {

using base::RequestChange;

KvPoolSteps::KvPoolSteps(const RunTimeline& timeline) : steps_(timeline.requests().steps()) {
    // Each commit reports the tokens of the whole cache, whether pages have changed or not.
    std::vector<base::TimeNs> reported;
    for (const auto& [time, tokens] : timeline.counters().samples("kv_tokens")) {
        reported.push_back(time);
    }
    if (reported.empty()) {
        for (const base::KvPageEvent& event : timeline.pages().all()) {
            if (reported.empty() || reported.back() != event.time) {
                reported.push_back(event.time);
            }
        }
    }
    placeCommits(reported);
}

/// The first commit within a step is its own; a second one is that of the step launched after it.
void KvPoolSteps::placeCommits(const std::vector<base::TimeNs>& reported) {
    commits_.reserve(reported.size());
    std::size_t next = 0; // the first step whose commit has not been seen
    for (const base::TimeNs time : reported) {
        const auto open = std::ranges::lower_bound(steps_, time, {}, &base::BatchStepEvent::end);
        const auto inside = static_cast<std::size_t>(open - steps_.begin());
        Commit commit{time, time, open != steps_.end() && open->begin <= time};
        if (commit.ofStep && inside < next) { // launched ahead: before the step under way ends
            commit.ofStep = time < open->end && inside + 1 < steps_.size() && next == inside + 1;
        }
        if (commit.ofStep) {
            next = std::max(inside, next);
            commit.place = steps_[next++].begin;
        }
        commit.place = commits_.empty() ? commit.place : std::max(commit.place, commits_.back().place);
        commits_.push_back(commit);
    }
}

base::TimeNs KvPoolSteps::ofPages(base::TimeNs time, bool used) const {
    const auto after = std::ranges::upper_bound(commits_, time, {}, &Commit::reported);
    if (after == commits_.begin()) {
        return time;
    }
    const auto commit =
        used ? std::ranges::lower_bound(commits_, (after - 1)->reported, {}, &Commit::reported) : after - 1;
    return commit->ofStep ? commit->place : time;
}

std::optional<base::TimeNs> KvPoolSteps::begin(std::int64_t index) const {
    const auto step = std::ranges::lower_bound(steps_, index, {}, &base::BatchStepEvent::index);
    return step != steps_.end() && step->index == index ? std::optional(step->begin) : std::nullopt;
}

std::optional<base::TimeNs> KvPoolSteps::landed(base::TimeNs time) const {
    const auto after = std::ranges::upper_bound(steps_, time, {}, &base::BatchStepEvent::end);
    return after == steps_.begin() ? std::nullopt : std::optional((after - 1)->begin);
}

std::optional<base::TimeNs> KvPoolSteps::givenBackAfter(std::int64_t index) const {
    const std::optional<base::TimeNs> own = begin(index), next = begin(index + 1);
    if (!own) {
        return next;
    }
    for (auto commit = std::ranges::upper_bound(commits_, *own, {}, &Commit::place);
         commit != commits_.end() && (!next || commit->place < *next); ++commit) {
        if (!commit->ofStep) {
            return commit->place;
        }
    }
    return next;
}

namespace {

struct Change {
    enum class Kind : std::uint8_t { Start, Read, Sampled, Stop };
    base::TimeNs time = 0;
    std::int32_t request = 0;
    Kind kind = Kind::Start;
    std::int64_t tokens = 0;
};

void addBorders(const RunTimeline& timeline, const KvPoolSteps& steps, std::vector<Change>& out) {
    std::unordered_map<std::int32_t, std::int64_t> prompts;
    for (const base::RequestEvent& event : timeline.requests().events()) {
        switch (event.phase) {
        case RequestChange::Arrived:
            prompts[event.request] = event.tokens;
            break;
        case RequestChange::Admitted:
        case RequestChange::Resumed: // without steps nobody says when the prompt is read
            out.push_back({steps.begin(event.step).value_or(event.time), event.request, Change::Kind::Start,
                           steps.empty() ? prompts[event.request] : event.tokens});
            break;
        case RequestChange::FirstToken:
            break;
        case RequestChange::Preempted:
            out.push_back({steps.begin(event.step).value_or(event.time), event.request, Change::Kind::Stop, 0});
            break;
        case RequestChange::Finished:
        case RequestChange::Cancelled:
        case RequestChange::Refused:
            out.push_back(
                {steps.givenBackAfter(event.step).value_or(event.time), event.request, Change::Kind::Stop, 0});
            break;
        }
    }
}

/// Pieces of prompts. Where a prompt is cut by the end of a step, that step's other prompts say how much of it was
/// read.
void addReading(const RunTimeline& timeline, const KvPoolSteps& steps, std::vector<Change>& out) {
    std::vector<base::SlotSpanEvent> spans;
    for (const base::SlotSpanEvent& span : timeline.requests().slotSpans()) {
        if (span.state == base::SlotState::Prefill && span.request >= 0 && span.steps > 0 &&
            steps.begin(span.firstStep)) {
            spans.push_back(span);
        }
    }
    std::ranges::stable_sort(spans, {}, &base::SlotSpanEvent::firstStep);
    std::vector<base::SlotSpanEvent> open; // `tokens` is what is left to read
    std::size_t next = 0;
    for (const base::BatchStepEvent& step : timeline.requests().steps()) {
        for (; next < spans.size() && spans[next].firstStep <= step.index; ++next) {
            open.push_back(spans[next]);
        }
        std::int64_t ending = 0, going = 0;
        for (const base::SlotSpanEvent& span : open) {
            const bool ends = span.firstStep + span.steps - 1 <= step.index;
            ending += ends ? span.tokens : 0;
            going += ends ? 0 : 1;
        }
        for (base::SlotSpanEvent& span : open) {
            const bool ends = span.firstStep + span.steps - 1 <= step.index;
            const std::int64_t read =
                ends ? span.tokens : std::clamp<std::int64_t>((step.prefillTokens - ending) / going, 0, span.tokens);
            out.push_back({step.begin, span.request, Change::Kind::Read, read});
            span.tokens -= read;
        }
        std::erase_if(open, [&step](const auto& span) { return span.firstStep + span.steps - 1 <= step.index; });
    }
}

} // namespace

std::vector<KvHeldChange> kvHeldTokens(const RunTimeline& timeline, const KvPoolSteps& steps) {
    std::vector<Change> changes;
    addBorders(timeline, steps, changes);
    addReading(timeline, steps, changes);
    for (const base::TokenEvent& token : timeline.tokens().all()) {
        changes.push_back({steps.landed(token.time).value_or(token.time), token.request, Change::Kind::Sampled, 0});
    }
    std::ranges::stable_sort(changes, {}, &Change::time);

    struct Request {
        bool runs = false;
        std::int64_t held = 0, prompt = 0, sampled = 0;
    };
    std::unordered_map<std::int32_t, Request> requests;
    for (const base::RequestEvent& event : timeline.requests().events()) {
        if (event.phase == RequestChange::Arrived) {
            requests[event.request].prompt = event.tokens;
        }
    }
    std::vector<KvHeldChange> out;
    out.reserve(changes.size());
    for (const Change& change : changes) {
        const auto found = requests.find(change.request);
        if (found == requests.end()) {
            continue;
        }
        Request& request = found->second;
        switch (change.kind) {
        case Change::Kind::Start:
            request.runs = true;
            request.held = change.tokens;
            break;
        case Change::Kind::Read:
            request.held += change.tokens;
            break;
        case Change::Kind::Sampled: // whatever happened before, all tokens but the sampled one are there now
            request.held = request.prompt + request.sampled++;
            break;
        case Change::Kind::Stop:
            if (std::exchange(request.runs, false)) {
                out.push_back({change.time, change.request, std::nullopt});
            }
            break;
        }
        if (request.runs) {
            out.push_back({change.time, change.request, request.held});
        }
    }
    return out;
}

} // namespace vitrine::profiler
