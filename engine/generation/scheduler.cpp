// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/scheduler.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace vitrine::engine {

std::int64_t BatchPlan::tokens() const {
    return std::accumulate(rows.begin(), rows.end(), std::int64_t{0},
                           [](std::int64_t sum, const PlannedRow& row) { return sum + row.tokens; });
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

std::int32_t Scheduler::add(std::span<const std::int32_t> prompt, std::int64_t maxNewTokens) {
    const auto number = static_cast<std::int32_t>(entries_.size());
    const auto length = static_cast<std::int64_t>(prompt.size());
    std::string never = whyNever(length, maxNewTokens);
    if (!never.empty()) {
        return refuse(never);
    }
    Entry& entry = entries_.emplace_back();
    entry.prompt = length;
    entry.maxNew = maxNewTokens;
    if (book_->sharesPrefixes()) {
        entry.tokens.assign(prompt.begin(), prompt.end());
    }
    queue_.push_back(number);
    return number;
}

std::int32_t Scheduler::refuse(const std::string& reason) {
    Entry& entry = entries_.emplace_back();
    entry.state = RequestState::Refused;
    entry.reason = reason;
    return static_cast<std::int32_t>(entries_.size()) - 1;
}

bool Scheduler::ended(std::int32_t request) const {
    const RequestState state = at(request).state;
    return state == RequestState::Finished || state == RequestState::Cancelled || state == RequestState::Refused;
}

std::int32_t Scheduler::running() const {
    return static_cast<std::int32_t>(
        std::count_if(slots_.begin(), slots_.end(), [](int request) { return request >= 0; }));
}

std::int32_t Scheduler::preempted() const {
    // Who has run arrived before everyone who has not.
    const auto hasRun = [this](std::int32_t request) { return at(request).state != RequestState::Waiting; };
    return static_cast<std::int32_t>(std::find_if_not(queue_.begin(), queue_.end(), hasRun) - queue_.begin());
}

std::int64_t Scheduler::longestRunning() const {
    std::int64_t longest = 0;
    for (const std::int32_t request : slots_) {
        longest = request >= 0 ? std::max(longest, at(request).atMost()) : longest;
    }
    return longest;
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
}

BatchPlan Scheduler::next() {
    releaseEnded();
    BatchPlan plan;
    plan.index = steps_;
    budget_ = options_.tokenBudget;
    lost_.clear();
    if (options_.mode == BatchMode::Static) {
        planStatic(plan);
    } else {
        planContinuous(plan);
    }
    takeCopies(plan);
    std::stable_sort(plan.rows.begin(), plan.rows.end(), [](const PlannedRow& a, const PlannedRow& b) {
        return std::tuple(a.kind != RowKind::Decode, a.slot) < std::tuple(b.kind != RowKind::Decode, b.slot);
    });
    steps_ += plan.empty() ? 0 : 1;
    return plan;
}

// --- continuous

/// Running requests in the order in which they get tokens.
std::vector<std::int32_t> Scheduler::runningOrder() const {
    std::vector<std::int32_t> order;
    for (const std::int32_t request : slots_) {
        if (request >= 0) {
            order.push_back(request);
        }
    }
    const auto rank = [this](std::int32_t request) {
        const Entry& entry = at(request);
        const bool overdue = entry.idle >= options_.fairSteps;
        const bool later = entry.decodes() == (options_.order == BatchOrder::PrefillFirst);
        // Decoding requests take turns where the budget is too small for all; prompts are read one after the other.
        const bool turns = overdue || entry.decodes();
        return std::tuple(!overdue, !overdue && later, turns ? -entry.idle : 0, request);
    };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return rank(a) < rank(b); });
    return order;
}

void Scheduler::takeCopies(BatchPlan& plan) {
    for (const PageCopy& copy : book_->takeCopies()) {
        plan.moves.emplace_back().copy = copy;
    }
}

void Scheduler::preempt(std::int32_t request, std::vector<Claim>& claims, BatchPlan& plan) {
    const auto mine = std::find_if(claims.begin(), claims.end(), [&](const Claim& c) { return c.request == request; });
    Entry& entry = at(request);
    if (mine != claims.end()) {
        budget_ += mine->tokens;
        claims.erase(mine);
    }
    lost_.push_back(request);
    queue_.insert(std::lower_bound(queue_.begin(), queue_.end(), request), request);
    const auto isMine = [&](const auto& item) { return item.request == request; };
    const bool fromHost = std::erase_if(plan.moves, isMine) > 0;
    if (std::erase_if(plan.admitted, isMine) > 0) {
        // It came in with this step and goes as it came; what is on the host is still there.
        const std::int64_t computed = entry.computed;
        leaveSlot(request, fromHost ? RequestState::Swapped : RequestState::Preempted);
        entry.swapped = fromHost ? computed : 0;
        entry.computed = entry.swapped;
        swapUsed_ += pagesInSwap(entry);
        return;
    }
    SlotChange change{request, entry.slot};
    PageMove move;
    move.kind = PageMove::Kind::SwapOut;
    move.request = request;
    std::int64_t count = 0;
    for (int group = 0; group < static_cast<int>(book_->groups().size()); ++group) {
        // Pages that were only taken for this step hold nothing yet.
        const auto pages = book_->pages(entry.sequence, group);
        move.pages.emplace_back(pages.begin(), pages.begin() + book_->pagesFor(group, entry.computed));
        count += static_cast<std::int64_t>(move.pages.back().size());
    }
    change.swapped =
        options_.preemption == Preemption::Swap && entry.computed > 0 && swapUsed_ + count <= options_.swapPages;
    leaveSlot(request, change.swapped ? RequestState::Swapped : RequestState::Preempted);
    if (change.swapped) {
        entry.swapped = entry.computed;
        swapUsed_ += count;
        takeCopies(plan); // what was copied into its pages goes with them
        plan.moves.push_back(std::move(move));
    } else {
        entry.computed = 0;
    }
    plan.preempted.push_back(change);
}

/// Takes the pages for `tokens` more tokens, from requests that arrived later if need be. False when it lost its own place.
bool Scheduler::makeRoom(std::int32_t request, std::int64_t tokens, std::vector<Claim>& claims, BatchPlan& plan) {
    while (!book_->grow(at(request).sequence, tokens)) {
        const std::int32_t youngest = *std::max_element(slots_.begin(), slots_.end());
        preempt(youngest, claims, plan);
        if (youngest == request) {
            return false;
        }
    }
    return true;
}

void Scheduler::claim(std::int32_t request, std::vector<Claim>& claims, BatchPlan& plan) {
    const Entry& entry = at(request);
    std::int64_t tokens = std::min(entry.need(), budget_);
    if (options_.oneByOne) {
        tokens = std::min(tokens, std::max<std::int64_t>(entry.prompt - entry.computed, 1));
    }
    if (tokens > 0 && makeRoom(request, tokens, claims, plan)) {
        budget_ -= tokens;
        claims.push_back({request, tokens});
    }
}

/// Whether free slots still wait for company.
bool Scheduler::gathers(bool anyDecodes) {
    const std::int32_t free = options_.slots - running();
    if (free == 0 || !anyDecodes || queued() <= free || free * 2 >= options_.slots ||
        gathered_ >= options_.gatherSteps) {
        gathered_ = 0;
        return false;
    }
    ++gathered_;
    return true;
}

bool Scheduler::admits(const Entry& entry) const {
    const bool off = options_.preemption == Preemption::Off;
    // Beginning inside a shared page copies it.
    const std::int64_t copied = book_->sharesPrefixes() ? 1 : 0;
    for (int group = 0; group < static_cast<int>(book_->groups().size()); ++group) {
        const std::int64_t wanted = book_->pagesFor(group, off ? entry.atMost() : entry.known()) + copied;
        std::int64_t room = book_->available(group);
        for (const std::int32_t request : slots_) {
            if (request < 0) {
                continue;
            }
            const std::int64_t more = book_->pagesFor(group, at(request).atMost()) + copied -
                                      static_cast<std::int64_t>(book_->pages(at(request).sequence, group).size());
            // The next page of everyone who runs, so that who comes in does not lose its place at once; without preemption
            // all of them.
            room -= std::max<std::int64_t>(0, off ? more : std::min<std::int64_t>(more, 1));
        }
        // Alone it always fits: nobody else would ever give pages back.
        const bool alone = running() == 0 && book_->pagesFor(group, entry.atMost()) <= book_->available(group);
        if (wanted > room && !alone) {
            return false;
        }
    }
    return true;
}

/// `claimNow`: who comes in takes tokens of what the others left; else only its slot.
void Scheduler::admit(std::vector<Claim>& claims, BatchPlan& plan, bool claimNow) {
    while (!queue_.empty() && budget_ > 0) {
        const std::int32_t request = queue_.front();
        const std::int32_t slot = freeSlot();
        Entry& entry = at(request);
        // Who lost its place in this step waits for the next one.
        const bool lost = std::find(lost_.begin(), lost_.end(), request) != lost_.end();
        if (slot < 0 || lost || !admits(entry)) {
            return;
        }
        queue_.pop_front();
        slots_[static_cast<std::size_t>(slot)] = request;
        entry.slot = slot;
        entry.sequence = book_->addSequence();
        entry.state = RequestState::Running;
        if (entry.swapped > 0) {
            if (!book_->grow(entry.sequence, entry.swapped)) {
                throw base::Internal("a request was admitted without pages");
            }
            book_->commit(entry.sequence, entry.swapped);
            PageMove move;
            move.kind = PageMove::Kind::SwapIn;
            move.request = request;
            for (int group = 0; group < static_cast<int>(book_->groups().size()); ++group) {
                const auto pages = book_->pages(entry.sequence, group);
                move.pages.emplace_back(pages.begin(), pages.end());
            }
            swapUsed_ -= pagesInSwap(entry);
            entry.swapped = 0;
            takeCopies(plan); // a page that was copied into may be one of these by now
            plan.moves.push_back(std::move(move));
        } else {
            entry.computed = book_->adoptPrefix(entry.sequence, entry.tokens);
        }
        plan.admitted.push_back({request, slot, entry.ran, false, entry.computed});
        entry.ran = true;
        if (claimNow) {
            claim(request, claims, plan);
        }
    }
}

void Scheduler::addRow(const Claim& claim, BatchPlan& plan) {
    Entry& entry = at(claim.request);
    PlannedRow row;
    row.request = claim.request;
    row.slot = entry.slot;
    row.sequence = entry.sequence;
    row.kind = entry.decodes() ? RowKind::Decode : RowKind::Prefill;
    row.begin = entry.computed;
    row.tokens = claim.tokens;
    entry.computed += claim.tokens;
    row.samples = entry.computed == entry.known();
    if (row.samples) {
        ++entry.generated;
        entry.ending = entry.generated == entry.maxNew;
    }
    plan.rows.push_back(row);
}

void Scheduler::planContinuous(BatchPlan& plan) {
    std::vector<Claim> claims;
    const bool anyDecodes = std::any_of(slots_.begin(), slots_.end(),
                                        [this](std::int32_t request) { return request >= 0 && at(request).decodes(); });
    const bool gather = gathers(anyDecodes);
    const bool prefillFirst = options_.order == BatchOrder::PrefillFirst;
    if (prefillFirst && !gather) {
        admit(claims, plan, false);
    }
    for (const std::int32_t request : runningOrder()) {
        if (at(request).state == RequestState::Running) { // it may have lost its place to one before it
            claim(request, claims, plan);
        }
    }
    if (!prefillFirst && !gather) {
        admit(claims, plan, true);
    }
    for (const std::int32_t request : slots_) {
        if (request >= 0) {
            ++at(request).idle;
        }
    }
    for (const Claim& claim : claims) {
        at(claim.request).idle = 0;
        addRow(claim, plan);
    }
}

// --- static

/// Whether the first `count` waiting requests fit as one batch, with its padding, until its longest answer has ended.
bool Scheduler::staticFits(std::int64_t count) const {
    std::int64_t longest = 0;
    std::int64_t newTokens = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const Entry& entry = at(queue_[static_cast<std::size_t>(i)]);
        longest = std::max(longest, entry.prompt);
        newTokens = std::max(newTokens, entry.maxNew);
    }
    for (int group = 0; group < static_cast<int>(book_->groups().size()); ++group) {
        std::int64_t pages = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            const Entry& entry = at(queue_[static_cast<std::size_t>(i)]);
            pages +=
                book_->pagesFor(group, entry.prompt + newTokens - 1) + book_->pagesFor(group, longest - entry.prompt);
        }
        if (pages > book_->available(group)) {
            return false;
        }
    }
    return true;
}

void Scheduler::startStatic(BatchPlan& plan) {
    if (queue_.empty() || (queued() < options_.slots && !closed_)) {
        return;
    }
    std::int64_t count = std::min(options_.slots, queued());
    while (count > 1 && !staticFits(count)) {
        --count;
    }
    std::int64_t longest = 0;
    staticNewTokens_ = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const Entry& entry = at(queue_[static_cast<std::size_t>(i)]);
        longest = std::max(longest, entry.prompt);
        staticNewTokens_ = std::max(staticNewTokens_, entry.maxNew);
    }
    for (std::int32_t slot = 0; slot < count; ++slot) {
        const std::int32_t request = queue_.front();
        queue_.pop_front();
        Entry& entry = at(request);
        slots_[static_cast<std::size_t>(slot)] = request;
        entry.slot = slot;
        entry.state = RequestState::Running;
        entry.sequence = book_->addSequence();
        entry.toPad = longest - entry.prompt;
        entry.padding = entry.toPad > 0 ? book_->addSequence() : -1;
        plan.admitted.push_back({request, slot, false, false, 0});
    }
}

/// The padding of a prompt, then the prompt itself, as far as the budget goes.
void Scheduler::readStatic(std::int32_t request, BatchPlan& plan) {
    Entry& entry = at(request);
    const std::int64_t padding = std::min(entry.toPad - entry.padded, budget_);
    if (padding > 0) {
        takePages(entry.padding, padding);
        plan.rows.push_back({-1, entry.slot, entry.padding, RowKind::Padding, entry.padded, padding, false});
        entry.padded += padding;
    }
    const std::int64_t tokens = std::min(entry.prompt - entry.computed, budget_);
    if (tokens > 0) {
        takePages(entry.sequence, tokens);
        if (entry.ending) { // a stop came before its first token
            plan.rows.push_back({request, entry.slot, entry.sequence, RowKind::Padding, entry.computed, tokens, false});
            entry.computed += tokens;
        } else {
            addRow({request, tokens}, plan);
        }
    }
}

void Scheduler::takePages(int sequence, std::int64_t tokens) {
    if (!book_->grow(sequence, tokens)) {
        throw base::Internal("a static batch began without pages for its answers");
    }
    budget_ -= tokens;
}

void Scheduler::planStatic(BatchPlan& plan) {
    if (running() == 0) {
        startStatic(plan);
    }
    std::vector<std::int32_t> batch;
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(batch), [](int request) { return request >= 0; });
    const bool reads = std::any_of(batch.begin(), batch.end(),
                                   [this](int request) { return at(request).computed < at(request).prompt; });
    if (reads) {
        for (const std::int32_t request : batch) {
            readStatic(request, plan);
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
            addRow({request, 1}, plan);
        } else if (entry.computed < entry.prompt + staticNewTokens_ - 1) {
            takePages(entry.sequence, 1);
            plan.rows.push_back({request, entry.slot, entry.sequence, RowKind::Padding, entry.computed, 1, false});
            ++entry.computed;
        }
    }
}

} // namespace vitrine::engine
