// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Static batching: padded batches that step until their longest answer has ended.

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/error.h"
#include "engine/generation/scheduler.h"

namespace vitrine::engine {

/// Whether these requests fit as one batch, with its padding, until its longest answer has ended.
bool Scheduler::staticFits(std::span<const std::int32_t> batch) const {
    std::int64_t longest = 0;
    std::int64_t newTokens = 0;
    for (const std::int32_t request : batch) {
        const Entry& entry = at(request);
        longest = std::max(longest, entry.prompt);
        newTokens = std::max(newTokens, entry.maxNew);
    }
    for (int group = 0; group < static_cast<int>(book_->groups().size()); ++group) {
        std::int64_t pages = 0;
        for (const std::int32_t request : batch) {
            const Entry& entry = at(request);
            pages +=
                book_->pagesFor(group, entry.prompt + newTokens - 1) + book_->pagesFor(group, longest - entry.prompt);
        }
        if (pages > book_->available(group)) {
            return false;
        }
    }
    return true;
}

void Scheduler::startStatic(StepSchedule& schedule) {
    if (queue_.empty() || (queued() < options_.slots && !closed_)) {
        return;
    }
    std::vector<std::int32_t> batch = nextInQueue(options_.slots);
    while (batch.size() > 1 && !staticFits(batch)) {
        batch.pop_back();
    }
    std::int64_t longest = 0;
    staticNewTokens_ = 0;
    for (const std::int32_t request : batch) {
        const Entry& entry = at(request);
        longest = std::max(longest, entry.prompt);
        staticNewTokens_ = std::max(staticNewTokens_, entry.maxNew);
    }
    for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(batch.size()); ++slot) {
        const std::int32_t request = batch[static_cast<std::size_t>(slot)];
        comeIn(request);
        Entry& entry = at(request);
        slots_[static_cast<std::size_t>(slot)] = request;
        entry.slot = slot;
        entry.state = RequestState::Running;
        entry.sequence = book_->addSequence();
        entry.toPad = longest - entry.prompt;
        entry.padding = entry.toPad > 0 ? book_->addSequence() : -1;
        schedule.admitted.push_back({request, slot, false, false, 0});
    }
}

/// The padding of a prompt, then the prompt itself, as far as the budget goes.
void Scheduler::readStatic(std::int32_t request, StepSchedule& schedule) {
    Entry& entry = at(request);
    const std::int64_t padding = std::min(entry.toPad - entry.padded, budget_);
    if (padding > 0) {
        takePages(entry.padding, padding);
        schedule.rows.push_back({-1, entry.slot, entry.padding, RowKind::Padding, entry.padded, padding, false});
        entry.padded += padding;
    }
    const std::int64_t tokens = std::min(entry.prompt - entry.computed, budget_);
    if (tokens > 0) {
        takePages(entry.sequence, tokens);
        if (entry.ending) { // a stop came before its first token
            schedule.rows.push_back(
                {request, entry.slot, entry.sequence, RowKind::Padding, entry.computed, tokens, false});
            entry.computed += tokens;
        } else {
            addRow({request, tokens}, schedule);
        }
    }
}

void Scheduler::takePages(int sequence, std::int64_t tokens) {
    if (!book_->grow(sequence, tokens)) {
        throw base::Internal("a static batch began without pages for its answers");
    }
    budget_ -= tokens;
}

void Scheduler::scheduleStatic(StepSchedule& schedule) {
    if (running() == 0) {
        startStatic(schedule);
    }
    std::vector<std::int32_t> batch;
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(batch), [](int request) { return request >= 0; });
    const bool reads = std::any_of(batch.begin(), batch.end(),
                                   [this](int request) { return at(request).computed < at(request).prompt; });
    if (reads) {
        for (const std::int32_t request : batch) {
            readStatic(request, schedule);
        }
        return;
    }
    // Where the budget is smaller than the batch its requests take turns, and those that have ended come last.
    std::stable_sort(batch.begin(), batch.end(), [this](std::int32_t a, std::int32_t b) {
        return std::tuple(at(a).ending, at(a).generated) < std::tuple(at(b).ending, at(b).generated);
    });
    for (const std::int32_t request : batch) {
        Entry& entry = at(request);
        if (budget_ == 0) {
            break;
        }
        if (!entry.ending) {
            takePages(entry.sequence, 1);
            addRow({request, 1}, schedule);
        } else if (entry.computed < entry.prompt + staticNewTokens_ - 1) {
            takePages(entry.sequence, 1);
            schedule.rows.push_back({request, entry.slot, entry.sequence, RowKind::Padding, entry.computed, 1, false});
            ++entry.computed;
        }
    }
}

} // namespace vitrine::engine
