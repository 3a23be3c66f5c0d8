// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Continuous batching: which requests get tokens, pages and slots of the next step.

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "engine/generation/scheduler.h"

namespace vitrine::engine {
namespace {

/// Tokens from `begin` to the next of the ascending borders; without end where there is none.
std::int64_t tokensToBorder(const std::vector<std::int64_t>& borders, std::int64_t begin) {
    const auto border = std::upper_bound(borders.begin(), borders.end(), begin);
    return border == borders.end() ? std::numeric_limits<std::int64_t>::max() : *border - begin;
}

} // namespace

std::int64_t Scheduler::equalSteps() const {
    const std::vector<std::int32_t> requests = runningRequests();
    if (options_.mode != BatchMode::Continuous || requests.empty() ||
        static_cast<std::int64_t>(requests.size()) > options_.tokenBudget) {
        return 0;
    }
    std::int64_t steps = std::numeric_limits<std::int64_t>::max();
    for (const std::int32_t request : requests) {
        const Entry& entry = at(request);
        steps = std::min(steps, entry.decodes() ? entry.maxNew - entry.generated - 1 : 0);
    }
    // One that there is no room for now gets none from steps that only take pages.
    const bool comesNext = steps > 0 && !queue_.empty() && freeSlot() >= 0 && admits(at(nextInQueue(1).front()));
    return comesNext ? 0 : std::max<std::int64_t>(steps, 0);
}

void Scheduler::skipEqual(std::int64_t steps) {
    for (const std::int32_t request : runningRequests()) {
        Entry& entry = at(request);
        entry.computed += steps;
        entry.generated += steps;
        entry.idle = 0;
    }
    for (std::int64_t i = 0; i < steps && freeSlot() >= 0; ++i) {
        gathers(true);
    }
    steps_ += steps;
}

std::vector<std::int32_t> Scheduler::runningRequests() const {
    std::vector<std::int32_t> requests;
    std::ranges::copy_if(slots_, std::back_inserter(requests), [](std::int32_t request) { return request >= 0; });
    return requests;
}

/// Running requests in the order in which they get tokens.
std::vector<std::int32_t> Scheduler::runningOrder() const {
    std::vector<std::int32_t> order = runningRequests();
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

void Scheduler::takeCopies(StepSchedule& schedule) {
    for (const PageCopy& copy : book_->takeCopies()) {
        schedule.moves.emplace_back().copy = copy;
    }
}

void Scheduler::preempt(std::int32_t request, std::vector<Claim>& claims, StepSchedule& schedule) {
    const auto mine = std::find_if(claims.begin(), claims.end(), [&](const Claim& c) { return c.request == request; });
    Entry& entry = at(request);
    if (mine != claims.end()) {
        budget_ += mine->tokens;
        claims.erase(mine);
    }
    lost_.push_back(request);
    queue_.insert(std::lower_bound(queue_.begin(), queue_.end(), request), request);
    const auto isMine = [&](const auto& item) { return item.request == request; };
    const bool fromHost = std::erase_if(schedule.moves, isMine) > 0;
    const auto admitted = std::find_if(schedule.admitted.begin(), schedule.admitted.end(), isMine);
    if (admitted != schedule.admitted.end()) {
        // It came in with this step and goes as it came; what is on the host is still there.
        entry.ran = admitted->again;
        schedule.admitted.erase(admitted);
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
        takeCopies(schedule); // what was copied into its pages goes with them
        schedule.moves.push_back(std::move(move));
    } else {
        entry.computed = 0;
    }
    schedule.preempted.push_back(change);
}

/// Takes the pages for `tokens` more tokens, from requests that arrived later if need be. False when it lost its own
/// place.
bool Scheduler::makeRoom(std::int32_t request, std::int64_t tokens, std::vector<Claim>& claims,
                         StepSchedule& schedule) {
    while (!book_->grow(at(request).sequence, tokens)) {
        const std::int32_t youngest = *std::max_element(slots_.begin(), slots_.end());
        preempt(youngest, claims, schedule);
        if (youngest == request) {
            return false;
        }
    }
    return true;
}

void Scheduler::claim(std::int32_t request, std::vector<Claim>& claims, StepSchedule& schedule) {
    const Entry& entry = at(request);
    std::int64_t tokens = std::min(entry.need(), budget_);
    if (options_.oneByOne) {
        tokens = std::min(tokens, std::max<std::int64_t>(entry.prompt - entry.computed, 1));
    }
    tokens = std::min(tokens, tokensToBorder(entry.keepAt, entry.computed));
    const bool scores = entry.scored && entry.generated == 0;
    tokens = scores ? std::min(tokens, scoreBudget_) : tokens;
    if (tokens > 0 && makeRoom(request, tokens, claims, schedule)) {
        budget_ -= tokens;
        scoreBudget_ -= scores ? tokens : 0;
        claims.push_back({request, tokens});
    }
}

/// Drafts get what is left when everything else of the step has its tokens and pages.
void Scheduler::claimDrafts(std::vector<Claim>& claims) {
    for (Claim& claim : claims) {
        const Entry& entry = at(claim.request);
        const std::int64_t drafted = entry.decodes() ? std::min(entry.offered, budget_) : 0;
        if (drafted > 0 && book_->canGrow(entry.sequence, claim.tokens + drafted)) {
            book_->grow(entry.sequence, claim.tokens + drafted);
            claim.tokens += drafted;
            budget_ -= drafted;
        }
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
    for (int group = 0; group < static_cast<int>(book_->groups().size()); ++group) {
        const PageGroup& kind = book_->groups()[static_cast<std::size_t>(group)];
        // Beginning inside a shared page copies it; beside rings whole pages are shared.
        const std::int64_t copied = group == book_->growingGroup() && !book_->sharesRings() ? 1 : 0;
        const std::int64_t wanted = book_->pagesFor(group, off ? entry.atMost() : entry.known()) + copied;
        // Rings that are shared will be written, each in pages of its own; kept ones give way.
        const bool sharedRing = kind.ringPages > 0 && book_->sharesRings();
        std::int64_t room = sharedRing ? kind.pages - options_.otherPages : book_->available(group);
        for (const std::int32_t request : slots_) {
            if (request < 0) {
                continue;
            }
            const auto held = static_cast<std::int64_t>(book_->pages(at(request).sequence, group).size());
            const std::int64_t more = book_->pagesFor(group, at(request).atMost()) + copied - held;
            // Room for the next page of every running request, or else the admitted one would be preempted at once.
            // Without preemption: room for all their pages.
            room -= std::max<std::int64_t>(0, off ? more : std::min<std::int64_t>(more, 1)) + (sharedRing ? held : 0);
        }
        // A request that runs alone always fits: no other one could give pages back.
        const bool alone = running() == 0 && book_->pagesFor(group, entry.atMost()) <= book_->available(group);
        if (wanted > room && !alone) {
            return false;
        }
    }
    return true;
}

/// `claimNow`: an admitted request takes tokens that the others left; otherwise only its slot.
void Scheduler::admit(std::vector<Claim>& claims, StepSchedule& schedule, bool claimNow) {
    while (!queue_.empty() && budget_ > 0) {
        const std::int32_t request = nextInQueue(1).front();
        const std::int32_t slot = freeSlot();
        Entry& entry = at(request);
        // A request that was preempted in this step waits for the next one.
        const bool lost = std::find(lost_.begin(), lost_.end(), request) != lost_.end();
        if (slot < 0 || lost || !admits(entry)) {
            return;
        }
        comeIn(request);
        slots_[static_cast<std::size_t>(slot)] = request;
        entry.slot = slot;
        entry.sequence = book_->addSequence();
        entry.state = RequestState::Running;
        const bool comesBack = entry.swapped > 0;
        if (comesBack) {
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
            takeCopies(schedule); // a page that was copied into may be one of these by now
            schedule.moves.push_back(std::move(move));
        } else {
            entry.computed = book_->adoptPrefix(entry.sequence, entry.tokens);
            entry.keepAt = keptLengths(entry);
        }
        schedule.admitted.push_back({request, slot, entry.ran, comesBack, entry.computed});
        entry.ran = true;
        if (claimNow) {
            claim(request, claims, schedule);
        }
    }
}

/// Where rings are worth keeping, of what a request that comes in still has to compute.
std::vector<std::int64_t> Scheduler::keptLengths(const Entry& entry) const {
    std::vector<std::int64_t> out;
    if (!book_->sharesRings()) {
        return out;
    }
    const std::int64_t pageTokens = book_->groups()[static_cast<std::size_t>(book_->growingGroup())].pageTokens;
    const std::int64_t last = (entry.prompt - 1) / pageTokens * pageTokens;
    for (const std::int64_t length : {std::min(book_->knownPrefix(entry.tokens), last), last}) {
        if (length > entry.computed && (out.empty() || out.back() < length)) {
            out.push_back(length);
        }
    }
    return out;
}

void Scheduler::addRow(const Claim& claim, StepSchedule& schedule) {
    Entry& entry = at(claim.request);
    ScheduledRow row;
    row.request = claim.request;
    row.slot = entry.slot;
    row.sequence = entry.sequence;
    row.kind = entry.decodes() ? RowKind::Decode : RowKind::Prefill;
    row.begin = entry.computed;
    row.tokens = claim.tokens;
    row.drafts = row.kind == RowKind::Decode ? claim.tokens - 1 : 0;
    entry.computed += claim.tokens;
    row.keepsRings = std::binary_search(entry.keepAt.begin(), entry.keepAt.end(), entry.computed);
    row.samples = entry.computed == entry.known() + row.drafts;
    if (row.samples) {
        entry.generated += 1 + row.drafts;
        entry.ending = entry.generated == entry.maxNew;
    }
    schedule.rows.push_back(row);
}

std::vector<std::int32_t> Scheduler::decoding() const {
    std::vector<std::int32_t> out;
    for (const std::int32_t request : slots_) {
        if (options_.mode == BatchMode::Continuous && request >= 0 && at(request).decodes() && !at(request).ending) {
            out.push_back(request);
        }
    }
    return out;
}

void Scheduler::reject(std::int32_t request, std::int64_t tokens) {
    Entry& entry = at(request);
    entry.computed -= tokens;
    entry.generated -= tokens;
    entry.ending = false;
}

void Scheduler::undo(const StepSchedule& schedule) {
    for (const ScheduledRow& row : schedule.rows) {
        if (row.request < first_ || ended(row.request)) {
            continue;
        }
        Entry& entry = at(row.request);
        entry.computed = row.begin;
        entry.generated -= row.samples ? 1 + row.drafts : 0;
        entry.ending = false;
    }
    steps_ = schedule.index;
}

void Scheduler::loseSwapped(std::int32_t request) {
    Entry& entry = at(request);
    swapUsed_ -= pagesInSwap(entry);
    entry.swapped = 0;
    entry.computed = 0;
    entry.state = RequestState::Preempted;
    options_.swapPages = std::min(options_.swapPages, swapUsed_);
}

void Scheduler::scheduleContinuous(StepSchedule& schedule) {
    std::vector<Claim> claims;
    const bool anyDecodes = std::any_of(slots_.begin(), slots_.end(),
                                        [this](std::int32_t request) { return request >= 0 && at(request).decodes(); });
    const bool gather = gathers(anyDecodes);
    const bool prefillFirst = options_.order == BatchOrder::PrefillFirst;
    if (prefillFirst && !gather) {
        admit(claims, schedule, false);
    }
    for (const std::int32_t request : runningOrder()) {
        if (at(request).state == RequestState::Running) { // it may have lost its place to one before it
            claim(request, claims, schedule);
        }
    }
    if (!prefillFirst && !gather) {
        admit(claims, schedule, true);
    }
    claimDrafts(claims);
    for (const std::int32_t request : slots_) {
        if (request >= 0) {
            ++at(request).idle;
            at(request).offered = 0;
        }
    }
    for (const Claim& claim : claims) {
        at(claim.request).idle = 0;
        addRow(claim, schedule);
    }
}

} // namespace vitrine::engine
