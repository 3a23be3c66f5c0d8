// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Decides which requests get which tokens in the next step. Continuous batching is the normal mode; static batching is
// there to compare it with.
//
// A scheduler works over a PageBook. It knows lengths and pages, but no tensors and no clock. next() schedules one step
// and takes the pages for it. The caller runs the step and commits its tokens to the page book (KvCache::commit does
// this) before it calls next() again.
//
// Mode Continuous. Each step gives every running request its next token and uses the rest of the token budget for
// pieces of prompts.
// - Admission: a waiting request gets a slot when a slot is free and the pages for the tokens that it must compute are
// free. The order is that of arrival, or that of LongestFirst. A request never goes before one that is ahead of it in
// this order.
// - Preemption: when pages run short, the running request that arrived last loses its slot and its pages and goes back
// to its place in the queue. So the oldest request always gets on. A request that the whole pool could not hold is
// refused when it is added. Together this rules out deadlocks. With Preemption::Off the pages of the longest possible
// answer are set aside at admission.
// - Shared rings (PageBook::sharesRings): the reading of a prompt stops at up to two borders of pages, so that the
// rings can be saved there. One is the last border before the end of the prompt; it serves prompts that continue this
// one. The other is the border where the prompt leaves a known prefix; it serves prompts that begin in the same way.
// Each stop makes one piece more.
// - Fairness: a request in a slot gets tokens at least every fairSteps + slots steps, whatever the order is. With
// LongestFirst a waiting request is overtaken at most overtakes * slots times.
//
// - Drafts (speculation.h): a decoding request may offer drafted tokens for its next row. They take what the budget and
// the free pages leave for them, and preempt nobody. After the step the caller takes wrong ones back (reject).
//
// Mode Static. A batch starts when all slots are free and as many requests wait as there are slots, or when no more
// requests will come. Prompts are padded to the length of the longest one; the padding has sequences of its own. The
// batch runs steps until its last request has ended.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "engine/cache/page_book.h"

namespace vitrine::engine {

enum class BatchMode : std::uint8_t { Continuous, Static };
/// Which requests get tokens first. Fifo: decoding requests, then prompts that are partly read, then waiting requests.
/// PrefillFirst: prompts that are partly read and waiting requests first.
/// LongestFirst: as Fifo, but of the waiting requests the one with the longest possible answer is admitted first. So
/// the last answers end at about the same time and slots stay full. Preempted requests are still admitted before all
/// others, and then requests that were overtaken too often. In mode Static the longest answers make the first batches.
/// Each admission looks at the whole queue.
enum class BatchOrder : std::uint8_t { Fifo, PrefillFirst, LongestFirst };
enum class Preemption : std::uint8_t { Off, Recompute, Swap };

struct SchedulerOptions {
    BatchMode mode = BatchMode::Continuous;
    std::int32_t slots = 16; ///< the most requests that run together
    BatchOrder order = BatchOrder::Fifo;
    Preemption preemption = Preemption::Recompute;
    std::int64_t tokenBudget = 8192; ///< the most tokens of one step
    /// Of them, the most that belong to prompts that are scored; BatchEngine chooses it.
    std::int64_t scoreBudget = 512;
    /// The most pages that host memory holds; a preempted request that finds no room there is computed again.
    std::int64_t swapPages = 0;
    std::int32_t fairSteps = 16;
    /// LongestFirst: how often, for each slot, later requests are admitted before a waiting one.
    std::int32_t overtakes = 16;
    /// While more requests wait than slots are free, admission waits up to this many steps for more free slots. A step
    /// that reads prompts is expensive, and several prompts in one step share the reading of the weights.
    std::int32_t gatherSteps = 0;
    std::int64_t maxQueue = 0; ///< the most requests that wait; 0: no limit
    /// A preempted request computes its generated tokens again one by one, as it did the first time. Models with
    /// dynamic rotary frequencies need this.
    bool oneByOne = false;
    std::int32_t firstRequest = 0; ///< the number of the first request; of those before nothing is known
    std::int64_t otherPages = 0;   ///< pages of each KV group that sequences of others than the scheduler hold
};

/// Preempted and Swapped requests wait in the queue again; the pages of Swapped ones are on the host.
enum class RequestState : std::uint8_t { Waiting, Running, Preempted, Swapped, Finished, Cancelled, Refused };

/// What a row of a step is for.
enum class RowKind : std::uint8_t {
    Prefill, ///< tokens of a prompt, or tokens that a preempted request computes again
    Decode,  ///< the token that was sampled last
    Padding, ///< no result is used: padding of a static batch (request -1), or a request of that batch that has ended
};

struct ScheduledRow {
    std::int32_t request = -1;
    std::int32_t slot = 0;
    int sequence = 0; ///< its number in the cache
    RowKind kind = RowKind::Decode;
    std::int64_t begin = 0; ///< position of the first token in its sequence
    std::int64_t tokens = 1;
    bool samples = false;    ///< the request gets its next token from this row
    std::int64_t drafts = 0; ///< kind Decode: the last of its tokens, which are drafted and may be wrong
    /// After this row the rings of the sequence are to be saved for prompts that begin in the same way.
    bool keepsRings = false;
};

/// A copy of page contents before the step. Moves are done in the order of StepSchedule::moves, because a later move
/// may write a page that an earlier one reads.
struct PageMove {
    enum class Kind : std::uint8_t { Copy, SwapOut, SwapIn };
    Kind kind = Kind::Copy;
    PageCopy copy;             ///< Copy
    std::int32_t request = -1; ///< SwapOut, SwapIn: the request whose pages go to the host, or come back
    std::vector<std::vector<std::int32_t>> pages; ///< SwapOut, SwapIn: pages by KV group
};

/// A request that next() admitted or preempted.
struct SlotChange {
    std::int32_t request = 0;
    std::int32_t slot = 0;
    bool again = false;    ///< admitted requests: it had run before
    bool swapped = false;  ///< preempted requests: its pages go to the host; admitted ones: they come back
    std::int64_t kept = 0; ///< admitted requests: tokens in the cache, of a shared prefix or of pages that come back
};

struct StepSchedule {
    std::int64_t index = 0;
    /// Decode rows ordered by slot, then the other rows ordered by slot.
    std::vector<ScheduledRow> rows;
    std::vector<PageMove> moves;
    std::vector<SlotChange> preempted;
    std::vector<SlotChange> admitted;

    bool empty() const { return rows.empty(); }
    std::int64_t tokens() const;
};

class Scheduler {
public:
    /// The page book must outlive the scheduler. REQUIRES at least one slot and a token budget of at least 1.
    Scheduler(const SchedulerOptions& options, PageBook& book);

    const SchedulerOptions& options() const { return options_; }

    /// Adds a request and returns its number; numbers count from 0. The ids of `prompt` matter only where prefixes are
    /// shared, its size always. The request may be refused: state() and reason() say so.
    /// `scored`: the logits of the whole prompt are wanted. `all`: it is read whole. Both take no shared prefix.
    std::int32_t add(std::span<const std::int32_t> prompt, std::int64_t maxNew, bool scored = false, bool all = false);
    /// Adds a request that the caller refuses for `reason`, and returns its number.
    std::int32_t refuse(const std::string& reason);
    /// Says that no more requests will come.
    void close() { closed_ = true; }

    /// Running requests whose next row is a token that they sampled; they may offer drafts. Empty in mode Static.
    std::vector<std::int32_t> decoding() const;
    /// Offers drafted tokens for the next row of a request of decoding(). The offer holds for one call of next(). The
    /// draft must be shorter than what the request may still generate.
    void offerDraft(std::int32_t request, std::int64_t tokens) { at(request).offered = tokens; }
    /// Takes the last `tokens` drafted tokens back that the last schedule had for a request: they were wrong. The
    /// caller takes them out of the cache. REQUIRES that the request has not ended, and no call of next() in between.
    void reject(std::int32_t request, std::int64_t tokens);

    /// Schedules the next step. The schedule is empty when nothing can run until a request arrives.
    StepSchedule next();
    /// Takes back the last schedule, which was not run, so that its tokens are scheduled again. Pages that it moved
    /// stay moved, and requests that it admitted or preempted stay admitted or preempted. REQUIRES mode Continuous, and
    /// no other call since next().
    void undo(const StepSchedule& schedule);
    /// How many of the next steps only give each running request one token of its answer: none of them ends a request,
    /// admits one or reads a prompt. Whether pages are needed is not looked at. 0 in mode Static.
    std::int64_t equalSteps() const;
    /// Goes over so many of these steps, whose pages the caller has taken. REQUIRES that prefixes are not shared.
    void skipEqual(std::int64_t steps);
    /// The requests in slots.
    std::vector<std::int32_t> runningRequests() const;
    /// Sets the token budget of the steps that follow.
    void limitTokens(std::int64_t tokens) { options_.tokenBudget = std::max<std::int64_t>(tokens, 1); }
    /// Says that the host has no memory for the pages of a request that the last schedule swapped out. The request will
    /// be computed again. From now on the host is given no more pages than it holds at this moment.
    void loseSwapped(std::int32_t request);
    /// Ends a request because of a stop condition. Its slot and its pages are free at once; in mode Static, when its
    /// batch has ended.
    void stop(std::int32_t request);
    /// Cancels a request in any state. Its slot and its pages are free at once. Does nothing when the request has
    /// ended.
    void cancel(std::int32_t request);
    /// Says that the caller will not ask for the request again. Its entry is freed when the request and all earlier
    /// ones have ended and are forgotten.
    void forget(std::int32_t request);

    RequestState state(std::int32_t request) const { return at(request).state; }
    const std::string& reason(std::int32_t request) const { return at(request).reason; }
    /// Tokens that the request sampled, those of scheduled steps included.
    std::int64_t generated(std::int32_t request) const { return at(request).generated; }
    /// The number of the request's sequence in the cache; -1: the request is in no slot.
    int sequence(std::int32_t request) const { return at(request).sequence; }
    bool ended(std::int32_t request) const;
    /// The number of requests that were ever added.
    std::int32_t requests() const { return first_ + static_cast<std::int32_t>(entries_.size()); }
    std::size_t remembered() const { return entries_.size(); }

    std::int32_t queued() const { return static_cast<std::int32_t>(queue_.size()); }
    std::int32_t running() const;
    std::int32_t preempted() const; ///< requests of the queue that have run before
    /// Pages on the host, of all KV groups: at most options().swapPages.
    std::int64_t swappedPages() const { return swapUsed_; }
    /// The most pages of a KV group that the next step could take. Free pages of the pool serve for them first.
    std::int64_t mostPagesOfStep(int group) const;
    /// Requests that the pool could not hold even alone, because it has become smaller. They would wait for ever.
    std::vector<std::int32_t> requestsThatCannotFit() const;
    /// Tokens of the longest sequence that a running request can reach.
    std::int64_t longestRunning() const;
    /// The most steps in a row in which a running request gets no tokens.
    std::int32_t fairnessBound() const { return options_.fairSteps + options_.slots; }
    /// The most later requests that are admitted before a waiting one with LongestFirst.
    std::int32_t overtakeBound() const { return options_.overtakes * options_.slots; }

private:
    struct Entry {
        RequestState state = RequestState::Waiting;
        std::string reason;
        std::int64_t prompt = 0;
        std::int64_t maxNew = 0;
        std::vector<std::int32_t> tokens; ///< of the prompt; only where prefixes are shared
        std::int64_t computed = 0;        ///< tokens in the cache, or scheduled to be
        std::int64_t generated = 0;
        std::int32_t slot = -1;
        int sequence = -1;
        int padding = -1; ///< mode Static: the sequence of its padding
        std::int64_t padded = 0, toPad = 0;
        std::int64_t offered = 0;   ///< drafted tokens that the next row may have
        std::int32_t idle = 0;      ///< steps in a row without tokens
        std::int32_t overtaken = 0; ///< requests that arrived later and were admitted before it
        bool ending = false;        ///< its last token is scheduled
        bool ran = false, scored = false;
        bool forgotten = false;
        std::int64_t swapped = 0;         ///< tokens whose pages are on the host
        std::vector<std::int64_t> keepAt; ///< lengths of the sequence at which its rings are saved, ascending

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
    void claimDrafts(std::vector<Claim>& claims);
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
    std::deque<Entry> entries_; ///< by request, from number first_ on
    std::int32_t first_ = options_.firstRequest;
    std::deque<std::int32_t> queue_;  ///< by arrival
    std::vector<std::int32_t> slots_; ///< request in each slot; -1: free
    bool closed_ = false;
    std::int64_t steps_ = 0;
    std::int32_t gathered_ = 0;
    std::int64_t budget_ = 0, scoreBudget_ = 0; ///< of the step that is being scheduled
    std::vector<std::int32_t> lost_;            ///< requests preempted in the step that is being scheduled
    std::int64_t swapUsed_ = 0;
    std::int64_t staticNewTokens_ = 0; ///< new tokens of the longest answer of a static batch
};

} // namespace vitrine::engine
