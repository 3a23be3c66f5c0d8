// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/scheduler.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace vitrine::engine {

std::int64_t StepSchedule::tokens() const {
    return std::accumulate(rows.begin(), rows.end(), std::int64_t{0},
                           [](std::int64_t sum, const ScheduledRow& row) { return sum + row.tokens; });
}

Scheduler::Scheduler(const SchedulerOptions& options, PageBook& book)
    : options_(options), book_(&book), slots_(static_cast<std::size_t>(std::max(options.slots, 0)), -1) {
    if (options_.slots < 1 || options_.tokenBudget < 1) {
        throw base::Internal("a scheduler needs a slot and a token of budget");
    }
}

/// Why a request could never run; empty when it could.
std::string Scheduler::whyNever(std::int64_t prompt, std::int64_t maxNew) const {
    if (prompt < 1) {
        return "the prompt has no tokens";
    }
    if (maxNew < 1) {
        return "no new token is wanted";
    }
    if (options_.maxQueue > 0 && queued() >= options_.maxQueue) {
        return fmt::format("{} requests wait already", queued());
    }
    if (!book_->couldHold(prompt + maxNew - 1, options_.otherPages)) {
        return fmt::format("its {} tokens are more than the whole KV cache holds", prompt + maxNew - 1);
    }
    return {};
}

std::int32_t Scheduler::add(std::span<const std::int32_t> prompt, std::int64_t maxNew, bool scored, bool all) {
    const std::int32_t number = requests();
    const auto length = static_cast<std::int64_t>(prompt.size());
    std::string never = whyNever(length, maxNew);
    if (!never.empty()) {
        return refuse(never);
    }
    Entry& entry = entries_.emplace_back();
    entry.prompt = length;
    entry.maxNew = maxNew;
    entry.scored = scored;
    if (book_->sharesPrefixes() && !scored && !all) {
        entry.tokens.assign(prompt.begin(), prompt.end());
    }
    queue_.push_back(number);
    return number;
}

std::int32_t Scheduler::refuse(const std::string& reason) {
    Entry& entry = entries_.emplace_back();
    entry.state = RequestState::Refused;
    entry.reason = reason;
    return requests() - 1;
}

bool Scheduler::ended(std::int32_t request) const {
    if (request < first_) {
        return true;
    }
    const RequestState state = at(request).state;
    return state == RequestState::Finished || state == RequestState::Cancelled || state == RequestState::Refused;
}

std::int32_t Scheduler::running() const {
    return static_cast<std::int32_t>(
        std::count_if(slots_.begin(), slots_.end(), [](int request) { return request >= 0; }));
}

std::int32_t Scheduler::preempted() const {
    const auto hasRun = [this](std::int32_t request) { return at(request).state != RequestState::Waiting; };
    if (options_.order == BatchOrder::LongestFirst) {
        return static_cast<std::int32_t>(std::count_if(queue_.begin(), queue_.end(), hasRun));
    }
    // Requests that have run arrived before all that have not.
    return static_cast<std::int32_t>(std::find_if_not(queue_.begin(), queue_.end(), hasRun) - queue_.begin());
}

std::int64_t Scheduler::longestRunning() const {
    std::int64_t longest = 0;
    for (const std::int32_t request : slots_) {
        longest = request >= 0 ? std::max(longest, at(request).atMost()) : longest;
    }
    return longest;
}

std::int64_t Scheduler::mostPagesOfStep(int group) const {
    const PageGroup& kind = book_->groups()[static_cast<std::size_t>(group)];
    std::int64_t tokens = 0;
    std::int64_t back = 0; // pages that come from the host
    std::int64_t sequences = 0;
    const auto count = [&](std::int32_t request) {
        tokens += at(request).need() + at(request).offered;
        back += book_->pagesFor(group, at(request).swapped);
        ++sequences;
    };
    for (const std::int32_t request : slots_) {
        if (request >= 0) {
            count(request);
        }
    }
    for (std::size_t i = 0; i < queue_.size() && sequences < options_.slots; ++i) {
        count(queue_[i]);
    }
    // For each sequence a page that is begun, and one that is copied before it is written.
    return kind.ringPages > 0 ? 2 * kind.ringPages * sequences
                              : std::min(tokens, options_.tokenBudget) / kind.pageTokens + 2 * sequences + back;
}

std::vector<std::int32_t> Scheduler::requestsThatCannotFit() const {
    std::vector<std::int32_t> out;
    for (std::int32_t request = first_; request < requests(); ++request) {
        if (!ended(request) && !at(request).ending && !book_->couldHold(at(request).atMost(), options_.otherPages)) {
            out.push_back(request);
        }
    }
    return out;
}

std::int32_t Scheduler::freeSlot() const {
    const auto slot = std::find(slots_.begin(), slots_.end(), -1);
    return slot == slots_.end() ? -1 : static_cast<std::int32_t>(slot - slots_.begin());
}

std::int64_t Scheduler::pagesInSwap(const Entry& entry) const {
    std::int64_t pages = 0;
    for (int group = 0; group < static_cast<int>(book_->groups().size()); ++group) {
        pages += book_->pagesFor(group, entry.swapped);
    }
    return pages;
}

/// The first `count` (or as many as wait) in the order in which they come in.
std::vector<std::int32_t> Scheduler::nextInQueue(std::int64_t count) const {
    const std::int64_t wanted = std::min<std::int64_t>(count, queued());
    if (options_.order != BatchOrder::LongestFirst) {
        return {queue_.begin(), queue_.begin() + wanted};
    }
    const auto rank = [this, wanted](std::int32_t request) {
        const Entry& entry = at(request);
        const bool hasRun = entry.state != RequestState::Waiting;
        const bool overdue = entry.overtaken + wanted > overtakeBound(); // all of them may have arrived later
        return std::tuple(!hasRun, !overdue, hasRun || overdue ? 0 : -entry.maxNew, request);
    };
    std::vector<std::int32_t> order(queue_.begin(), queue_.end());
    std::partial_sort(order.begin(), order.begin() + wanted, order.end(),
                      [&](std::int32_t a, std::int32_t b) { return rank(a) < rank(b); });
    order.resize(static_cast<std::size_t>(wanted));
    return order;
}

/// The request leaves the queue for a slot. Requests that arrived before it and still wait have been overtaken.
void Scheduler::comeIn(std::int32_t request) {
    leaveQueue(request);
    if (options_.order == BatchOrder::LongestFirst && !at(request).ran) {
        for (const std::int32_t other : queue_) {
            at(other).overtaken += other < request ? 1 : 0;
        }
    }
}

void Scheduler::leaveQueue(std::int32_t request) {
    const auto place = std::lower_bound(queue_.begin(), queue_.end(), request);
    if (place != queue_.end() && *place == request) {
        queue_.erase(place);
    }
}

void Scheduler::leaveSlot(std::int32_t request, RequestState state) {
    Entry& entry = at(request);
    if (entry.slot >= 0) {
        slots_[static_cast<std::size_t>(entry.slot)] = -1;
        entry.slot = -1;
    }
    for (int* sequence : {&entry.sequence, &entry.padding}) {
        if (*sequence >= 0) {
            book_->removeSequence(*sequence);
            *sequence = -1;
        }
    }
    if (entry.swapped > 0) {
        swapUsed_ -= pagesInSwap(entry);
        entry.swapped = 0;
    }
    entry.state = state;
    entry.idle = 0;
    entry.offered = 0;
}

void Scheduler::stop(std::int32_t request) {
    Entry& entry = at(request);
    if (ended(request)) {
        return;
    }
    if (options_.mode == BatchMode::Static && entry.state == RequestState::Running) {
        entry.ending = true; // the others of its batch step on, and it with them
        return;
    }
    leaveQueue(request);
    leaveSlot(request, RequestState::Finished);
}

void Scheduler::cancel(std::int32_t request) {
    if (ended(request)) {
        return;
    }
    leaveQueue(request);
    leaveSlot(request, RequestState::Cancelled);
}

void Scheduler::forget(std::int32_t request) {
    if (request >= first_) {
        at(request).forgotten = true;
        dropForgotten();
    }
}

void Scheduler::dropForgotten() {
    while (!entries_.empty() && entries_.front().forgotten && ended(first_)) {
        entries_.pop_front();
        ++first_;
    }
}

void Scheduler::releaseEnded() {
    const auto isDone = [this](std::int32_t request) { return request < 0 || at(request).ending; };
    if (options_.mode == BatchMode::Static && !std::all_of(slots_.begin(), slots_.end(), isDone)) {
        return;
    }
    for (const std::int32_t request : std::vector<std::int32_t>(slots_)) {
        if (request >= 0 && at(request).ending) {
            leaveSlot(request, RequestState::Finished);
        }
    }
    dropForgotten();
}

StepSchedule Scheduler::next() {
    releaseEnded();
    StepSchedule schedule;
    schedule.index = steps_;
    budget_ = options_.tokenBudget;
    scoreBudget_ = std::max<std::int64_t>(options_.scoreBudget, 1);
    lost_.clear();
    if (options_.mode == BatchMode::Static) {
        scheduleStatic(schedule);
    } else {
        scheduleContinuous(schedule);
    }
    takeCopies(schedule);
    std::stable_sort(schedule.rows.begin(), schedule.rows.end(), [](const ScheduledRow& a, const ScheduledRow& b) {
        return std::tuple(a.kind != RowKind::Decode, a.slot) < std::tuple(b.kind != RowKind::Decode, b.slot);
    });
    steps_ += schedule.empty() ? 0 : 1;
    return schedule;
}

} // namespace vitrine::engine
