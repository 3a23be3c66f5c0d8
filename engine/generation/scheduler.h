// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which requests get which tokens of the next step: continuous batching, and static batching as what it is measured
// against.
//
// A value over a PageBook: it knows lengths and pages, no tensors and no clock. `next` schedules one step and takes its
// pages; the caller runs the step and commits its tokens to the book (KvCache::commit does) before it asks for the next
// one.
//
// Continuous: each step gives every running request its next token and fills what is left of the token budget with
// pieces of prompts. Requests are admitted in the order of their arrival (or LongestFirst's), never around one another,
// when a slot and the pages of what they have to compute are free. When pages run short the running request that
// arrived last loses its place (preemption) and waits at its place in the queue: a running request is older than a
// preempted one, so the oldest always gets on, and a request that the whole pool could not hold is refused at once.
// That is why it cannot deadlock. Without preemption the pages of the longest answer are set aside at admission. Where
// rings are shared (PageBook::sharesRings) a prompt is read up to two borders of pages, so that rings can be kept
// there: the last one before its end, for prompts that go on where it ends, and the one at which it leaves what is
// known, for others that begin alike. Each costs one piece more. Fairness: a request in a slot gets tokens at least
// every fairSteps + slots steps, whatever the order says. LongestFirst lets a waiting request be overtaken overtakes *
// slots times at most.
//
// Static: a batch starts when all slots are free and as many requests wait as there are slots (or none will come any
// more). Prompts are padded to the longest one with sequences of their own, and the batch steps until its last request
// has ended.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "engine/cache/page_book.h"

namespace vitrine::engine {

enum class BatchMode : std::uint8_t { Continuous, Static };
/// Fifo: tokens of running requests first, then prompts begun, then waiting requests.
/// PrefillFirst: prompts begun and waiting requests first.
/// LongestFirst: as Fifo, but of the waiting requests the one whose answer may be longest comes in first, so that the
/// last answers end together and slots stay full; preempted requests still come first, and requests that were overtaken
/// too often next. Static batches are made of the longest answers first then. Each admission looks at the whole queue.
enum class BatchOrder : std::uint8_t { Fifo, PrefillFirst, LongestFirst };
enum class Preemption : std::uint8_t { Off, Recompute, Swap };

struct SchedulerOptions {
    BatchMode mode = BatchMode::Continuous;
    std::int32_t slots = 16; ///< requests that run together at most
    BatchOrder order = BatchOrder::Fifo;
    Preemption preemption = Preemption::Recompute;
    std::int64_t tokenBudget = 8192; ///< tokens of one step at most
    std::int64_t swapPages = 0; ///< that host memory holds at most; a request that finds no room there is recomputed
    std::int32_t fairSteps = 16;
    std::int32_t overtakes = 16; ///< LongestFirst: for each slot, how often later requests come in before a waiting one
    /// While more requests wait than slots are free, a free slot waits so many steps for others to become free: steps
    /// that read prompts are dear, and share what they read of the weights.
    std::int32_t gatherSteps = 0;
    std::int64_t maxQueue = 0; ///< requests that wait at most, 0: no limit
    /// What was generated is computed again token by token, as it was the first time: for models whose rotary
    /// frequencies follow the length.
    bool oneByOne = false;
    std::int64_t otherPages = 0; ///< of each group, held by sequences that are none of the scheduler's
};

/// What a request may become. Preempted and Swapped wait again.
enum class RequestState : std::uint8_t { Waiting, Running, Preempted, Swapped, Finished, Cancelled, Refused };

/// What a row of a step is for.
enum class RowKind : std::uint8_t {
    Prefill, ///< tokens of a prompt, or of what a preempted request computes again
    Decode,  ///< the last token that was sampled
    Padding, ///< for nothing: padding of a static batch (request -1), or a request of it that has ended
};

struct ScheduledRow {
    std::int32_t request = -1;
    std::int32_t slot = 0;
    int sequence = 0; ///< of the cache
    RowKind kind = RowKind::Decode;
    std::int64_t begin = 0; ///< position of its first token
    std::int64_t tokens = 1;
    bool samples = false;    ///< the request gets its next token from it
    bool keepsRings = false; ///< what the sequence holds behind the row is worth keeping for prompts that begin like it
};

/// What happens to page contents before the step, in the order of the schedule's list: a page may be given from one to
/// the other.
struct PageMove {
    enum class Kind : std::uint8_t { Copy, SwapOut, SwapIn };
    Kind kind = Kind::Copy;
    PageCopy copy;                                ///< Copy
    std::int32_t request = -1;                    ///< the others: whose pages go to the host, or come back
    std::vector<std::vector<std::int32_t>> pages; ///< by group
};

/// A change that next() made to a request.
struct SlotChange {
    std::int32_t request = 0;
    std::int32_t slot = 0;
    bool again = false;    ///< admitted: it had run before
    bool swapped = false;  ///< preempted: its pages go to the host; admitted: they come back
    std::int64_t kept = 0; ///< tokens that are in the cache: those of a shared prefix, or those that come back
};

struct StepSchedule {
    std::int64_t index = 0;
    /// Decode rows by slot, then the others by slot.
    std::vector<ScheduledRow> rows;
    std::vector<PageMove> moves;
    std::vector<SlotChange> preempted;
    std::vector<SlotChange> admitted;

    bool empty() const { return rows.empty(); }
    std::int64_t tokens() const;
};

class Scheduler {
public:
    /// The book must outlive it. REQUIRES at least one slot and one token of budget.
    Scheduler(const SchedulerOptions& options, PageBook& book);

    const SchedulerOptions& options() const { return options_; }

    /// A request arrives; numbers count from 0. `prompt` is looked at where prefixes are shared, else only its size.
    /// A refused one is told by state() and reason().
    std::int32_t add(std::span<const std::int32_t> prompt, std::int64_t maxNewTokens);
    /// Takes a request that was not even looked at: refused for a reason of the caller's.
    std::int32_t refuse(const std::string& reason);
    /// No more requests will come.
    void close() { closed_ = true; }

    /// Schedules the next step; empty when nothing can run before a request arrives.
    StepSchedule next();
    /// The last schedule will not be run: its tokens are to be scheduled again. Pages that it moved stay moved, and
    /// requests that it admitted or preempted stay so. Continuous only, before anything else is asked of the scheduler.
    void undo(const StepSchedule& schedule);
    /// From here on a step has at most so many tokens.
    void limitTokens(std::int64_t tokens) { options_.tokenBudget = std::max<std::int64_t>(tokens, 1); }
    /// The host has no room for the pages of a request that the last schedule swapped out: it will be computed again,
    /// and no more pages go there than do now.
    void loseSwapped(std::int32_t request);
    /// A stop condition ended the request: tokens sampled after it are dropped. Its slot and pages are free at once.
    void stop(std::int32_t request);
    /// The same, at any time; nothing for one that has ended.
    void cancel(std::int32_t request);
    /// The caller is done with its state and reason; its memory is free once it and all before it have ended.
    void forget(std::int32_t request);

    RequestState state(std::int32_t request) const { return at(request).state; }
    const std::string& reason(std::int32_t request) const { return at(request).reason; }
    std::int64_t generated(std::int32_t request) const {
        return at(request).generated;
    } ///< the scheduled ones included
    int sequence(std::int32_t request) const { return at(request).sequence; } ///< -1: in no slot
    bool ended(std::int32_t request) const;
    std::int32_t requests() const {
        return first_ + static_cast<std::int32_t>(entries_.size());
    } ///< forgotten ones too
    std::size_t remembered() const { return entries_.size(); }

    std::int32_t queued() const { return static_cast<std::int32_t>(queue_.size()); }
    std::int32_t running() const;
    std::int32_t preempted() const;                         ///< of the queued ones
    std::int64_t swappedPages() const { return swapUsed_; } ///< on the host, of all groups; at most options().swapPages
    /// Pages of a group that the next step could take at most, free ones included.
    std::int64_t mostPagesOfStep(int group) const;
    /// Requests that the pool, having become smaller, could not hold even alone. Such a request would wait for ever.
    std::vector<std::int32_t> requestsThatCannotFit() const;
    /// The longest sequence that the running requests can come to, tokens.
    std::int64_t longestRunning() const;
    /// Steps in which a running request may go without tokens at most.
    std::int32_t fairnessBound() const { return options_.fairSteps + options_.slots; }
    /// Later requests that come in before a waiting one at most, where the order is not that of arrival.
    std::int32_t overtakeBound() const { return options_.overtakes * options_.slots; }

private:
    struct Entry {
        RequestState state = RequestState::Waiting;
        std::string reason;
        std::int64_t prompt = 0;
        std::int64_t maxNew = 0;
        std::vector<std::int32_t> tokens; ///< of the prompt, where prefixes are shared
        std::int64_t computed = 0;        ///< tokens in the cache, or scheduled to be
        std::int64_t generated = 0;
        std::int32_t slot = -1;
        int sequence = -1;
        int padding = -1; ///< static: the sequence of its padding
        std::int64_t padded = 0, toPad = 0;
        std::int32_t idle = 0;      ///< steps without tokens
        std::int32_t overtaken = 0; ///< requests that arrived later and came in before it
        bool ending = false;        ///< its last token is scheduled
        bool ran = false;
        bool forgotten = false;
        std::int64_t swapped = 0;         ///< tokens whose pages are on the host
        std::vector<std::int64_t> keepAt; ///< lengths at which its rings are kept, ascending

        std::int64_t known() const { return prompt + generated; }
        std::int64_t need() const { return known() - computed; }
        bool decodes() const { return generated > 0 && need() == 1; }
        std::int64_t atMost() const { return prompt + maxNew - 1; } ///< the last token is not fed back
    };
    struct Claim {
        std::int32_t request = 0;
        std::int64_t tokens = 0;
    };

    Entry& at(std::int32_t request) { return entries_[static_cast<std::size_t>(request - first_)]; }
    const Entry& at(std::int32_t request) const { return entries_[static_cast<std::size_t>(request - first_)]; }
    std::string whyNever(std::int64_t prompt, std::int64_t maxNew) const;
    std::int32_t freeSlot() const;
    std::vector<std::int32_t> nextInQueue(std::int64_t count) const;
    void comeIn(std::int32_t request);
    void leaveQueue(std::int32_t request);
    void leaveSlot(std::int32_t request, RequestState state);
    void releaseEnded();
    void dropForgotten();
    std::vector<std::int32_t> runningOrder() const;
    bool makeRoom(std::int32_t request, std::int64_t tokens, std::vector<Claim>& claims, StepSchedule& schedule);
    void takeCopies(StepSchedule& schedule);
    void preempt(std::int32_t request, std::vector<Claim>& claims, StepSchedule& schedule);
    void claim(std::int32_t request, std::vector<Claim>& claims, StepSchedule& schedule);
    bool gathers(bool anyDecodes);
    bool admits(const Entry& entry) const;
    void admit(std::vector<Claim>& claims, StepSchedule& schedule, bool claimNow);
    void scheduleContinuous(StepSchedule& schedule);
    void addRow(const Claim& claim, StepSchedule& schedule);
    std::vector<std::int64_t> keptLengths(const Entry& entry) const;
    void startStatic(StepSchedule& schedule);
    bool staticFits(std::span<const std::int32_t> batch) const;
    void readStatic(std::int32_t request, StepSchedule& schedule);
    void takePages(int sequence, std::int64_t tokens);
    void scheduleStatic(StepSchedule& schedule);
    std::int64_t pagesInSwap(const Entry& entry) const;

    SchedulerOptions options_;
    PageBook* book_;
    std::deque<Entry> entries_; ///< from number first_
    std::int32_t first_ = 0;
    std::deque<std::int32_t> queue_;  ///< by arrival
    std::vector<std::int32_t> slots_; ///< request of each, -1: free
    bool closed_ = false;
    std::int64_t steps_ = 0;
    std::int32_t gathered_ = 0;
    std::int64_t budget_ = 0;        ///< of the step that is being scheduled
    std::vector<std::int32_t> lost_; ///< requests preempted in the step that is being scheduled
    std::int64_t swapUsed_ = 0;
    std::int64_t staticNewTokens_ = 0; ///< of the longest answer of a static batch
};

} // namespace vitrine::engine
