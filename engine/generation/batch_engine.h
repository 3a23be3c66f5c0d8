// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Serves requests that come at any time with one model: a Scheduler says what each step is made of, this runs it.
//
// Prompt pieces and single tokens go into one ragged step. On CUDA a step is launched before the host has read the ids
// of the step before it (they stay on the device), and the host schedules while the device works; it then sees a stop
// token or a stop text one step late, and what was sampled behind it is dropped. That holds for steps that read prompts
// too, whether they sample or not; only steps with repetition penalties, the first ones of a kind and those that need a
// larger arena wait. Steps of single tokens have as many rows as the next bucket, filled up with rows that count for
// nothing, so that few captured graphs serve all of them; devices without graphs, and Meta with the traits of one that
// has them, do the same sums. Where rotary frequencies follow the length (dynamic), ops are launched one by one
// instead. A request's tokens do not depend on what else runs: not on the mode, the order, the slots, preemption or
// shared prefixes, but for rounding. Products of other numbers of rows sum in another order (on the CPU up to eight
// rows, and more): logits of float32 differ in their last bits, those of bf16 or over a cache of bytes by some
// hundredths, which shows where they lie close.
//
// What steps and pool may have is decided when the engine is made (fitBatch): memory that is too small for both means
// smaller steps and fewer pages from the beginning, or OutOfMemory there. What a step needs beyond the pages is known
// before its first kernel too. Where that does not fit, because others took memory meanwhile, and `survivesOutOfMemory`
// is set, the step is scheduled again with half the tokens, down to one token of one request, which then ends with
// OutOfMemory; the others go on. Steps stay small for a while then. Without `survivesOutOfMemory` the step throws and
// the engine is at its end. A pool that finds no memory stays as it is for a while; requests that it cannot hold even
// alone end likewise.
//
// An engine belongs to the thread of its model's context. `add` and `cancel` are called between steps.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/cache/kv_swap.h"
#include "engine/generation/batch_trace.h"
#include "engine/generation/generator.h"
#include "engine/generation/scheduler.h"
#include "engine/generation/step_engine.h"

namespace vitrine::engine {

struct BatchOptions {
    SchedulerOptions scheduler;
    /// Kind Paged. poolPages and poolSequences 0: chosen by fitBatch().
    KvCacheOptions cache;
    ChatFormatKind chatFormat = ChatFormatKind::ChatMl;
    base::ProgressSink* progress = nullptr; ///< of compiling kernels
    bool survivesOutOfMemory = false;       ///< goes on after a step that does not fit memory; mode Continuous only
    /// The longest prompt and answer that will come, for what is prepared before the first step; 0: not known.
    std::int64_t longestPrompt = 0;
    std::int64_t longestSequence = 0;
    std::int64_t mostForbidden = 0; ///< ids that a request may forbid
};

/// One request and what became of it. Times are on the context's clock; -1: has not happened.
struct BatchResult {
    GenerateResult result;
    std::string refusal; ///< why it was refused; empty: it was not
    std::string failure; ///< why it ended with OutOfMemory though the others go on; empty: it did not
    base::TimeNs arrival = 0;
    base::TimeNs admitted = -1;
    base::TimeNs firstToken = -1;
    base::TimeNs end = -1;
    std::int32_t preemptions = 0;
    std::int64_t sharedTokens = 0; ///< of its prompt, taken from another's pages
};

struct BatchCounts {
    std::int64_t steps = 0;
    std::int64_t samplingSteps = 0; ///< in which a request could get a token
    std::int64_t aheadSteps = 0;    ///< launched before the ids of the one before were read
    std::int64_t generated = 0;
    std::int64_t prefillTokens = 0;
    std::int64_t recomputedTokens = 0; ///< of them: computed before, and lost by a preemption
    std::int64_t paddingTokens = 0;
    std::int64_t sharedTokens = 0;    ///< of prompts, found in known pages: not computed, or not again
    std::int64_t sharingRequests = 0; ///< that had any
    std::int64_t preemptions = 0;
    std::int64_t swaps = 0;
    std::uint64_t swapBytes = 0; ///< both ways
    std::int64_t mostSwappedPages = 0;
    std::uint64_t swapHostBytes = 0; ///< taken for them; at most the pages that the scheduler may swap
    std::int64_t mostUsedPages = 0;
    std::uint64_t kvBytes = 0;     ///< largest sum over tokens kept
    std::uint64_t kvPageBytes = 0; ///< largest sum of pages in use
    double worstFragmentation = 0;
    std::int64_t outOfMemorySteps = 0; ///< that did not fit memory and were scheduled again
    std::int64_t failedRequests = 0;   ///< a single token of theirs did not fit
    std::int64_t lostSwaps = 0;        ///< preempted requests whose pages found no host memory
    double prefillSeconds = 0;         ///< of steps that read prompts
    double decodeSeconds = 0;          ///< of the others
};

class BatchEngine final : private StepEngine {
public:
    /// Makes the cache. `tokenizer` may be null: texts are then empty. Throws OutOfMemory.
    BatchEngine(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const BatchOptions& options);
    ~BatchEngine() override;
    BatchEngine(const BatchEngine&) = delete; // owns a cache on the model's context
    BatchEngine& operator=(const BatchEngine&) = delete;

    /// Compiles the kernels of the steps that may come; nothing where the context compiles none.
    void prepare();

    /// A request arrives; numbers count from 0 and are the request numbers of sampling. `arrival`: when it really did.
    std::int32_t add(GenerateRequest request, base::TimeNs arrival);
    /// One that is refused for a reason of the caller's.
    std::int32_t refuse(const std::string& reason, base::TimeNs arrival);
    /// No more requests will come (static batches wait for full ones before).
    void close() { scheduler_->close(); }
    /// Its pages and its slot are free when it returns. Nothing for one that has ended.
    void cancel(std::int32_t request);

    /// Launches or runs one step and takes the tokens of one. False when nothing can be done before a request arrives.
    /// Throws what steps throw (OutOfMemory only where it does not endure); the engine then serves no more, and
    /// requests that had not ended read as they were.
    bool step();

    /// Called after each token of a request, and not when it is refused. Must not throw, may call cancel.
    void onToken(TokenCallback callback) { onToken_ = std::move(callback); }
    /// Called when a request has ended in any way but by being refused. Must not throw.
    void onEnd(std::function<void(std::int32_t request)> callback) { onEnd_ = std::move(callback); }

    const BatchResult& result(std::int32_t request) const;
    bool ended(std::int32_t request) const { return scheduler_->ended(request); }
    /// The result of one that has ended, which is then forgotten: for engines that serve for ever.
    BatchResult takeResult(std::int32_t request);
    const BatchCounts& counts() const { return counts_; }
    /// What the last step that did not fit said; empty: all did.
    const std::string& lastOutOfMemory() const { return lastOutOfMemory_; }
    const Scheduler& scheduler() const { return *scheduler_; }
    const KvCache& cache() const { return *cache_; }
    /// Reports what each slot did up to here and begins anew: from now on the events go to the next recording.
    void tellSlots() { trace_->finish(); }
    /// Waits for the device, ends the slots' trace. Called by the destructor too.
    void finish() noexcept;
    /// After an error: every request that had not ended reads `reason`.
    void abandon(FinishReason reason);

private:
    struct Row;

    void makeMoves(StepSchedule& schedule);
    void moveOut(const PageMove& move, StepSchedule& schedule);
    std::uint64_t bytesOf(const PageMove& move) const;
    ActiveRequest* unended(std::int32_t request) const override;
    bool lives(const ScheduledRow& scheduled) const override;
    void complete(PendingStep& pending) override;
    bool launch(const PendingStep& pending) override;
    void ran(const PendingStep& pending) override;
    void entered(const PendingStep& pending) override;
    void landed(const PendingStep& pending, base::TimeNs begin) override;
    void accept(ActiveRequest& request, std::int32_t id, float logprob,
                std::vector<std::pair<std::int32_t, float>> top) override;
    void retrySmaller(const PendingStep& pending, const base::OutOfMemory& error);
    void raiseTokenLimit();
    void mapWholePool();
    void mapPagesOfNextStep();
    void endRequestsThatCannotFit(int group, std::int64_t pages);
    void liftPoolLimits();
    void reportSchedule(const StepSchedule& schedule);
    std::unique_ptr<PendingStep> preparePendingStep(StepSchedule schedule);
    std::vector<CarriedIds> carriedBy(const PendingStep& pending) const;
    void endRow(Row& row, FinishReason finish, base::TimeNs time, std::string_view reason);
    void publish(const PendingStep& pending);
    void noteCache();
    std::int32_t mostDecodes() const; ///< rows of a step of single tokens, those that fill it up included
    Row& rowOf(std::int32_t request) { return *rows_.at(request); }
    BatchResult& addRefused(std::int32_t number, const std::string& reason, base::TimeNs arrival);
    Row* unendedRow(std::int32_t request) const;
    std::vector<StepBatch> likelySteps(std::vector<std::int32_t>& tokens) const;

    std::shared_ptr<const Tokenizer> tokenizer_;
    BatchOptions options_;
    std::unique_ptr<Scheduler> scheduler_;
    std::unique_ptr<BatchTrace> trace_;
    std::map<std::int32_t, std::unique_ptr<Row>> rows_;
    std::unique_ptr<KvSwap> swap_; ///< null: nothing is swapped
    int fillSequence_ = -1;        ///< of rows that fill a bucket up
    bool buckets_ = false;
    std::unique_ptr<kernels::Arena> carryArena_;
    kernels::Tensor carry_; ///< (2, rows) ids that steps leave to the next one, in turns
    std::int64_t carryRows_ = 0;
    int carryHalf_ = 0;
    BatchCounts counts_;
    TokenCallback onToken_;
    std::function<void(std::int32_t)> onEnd_;
    std::int64_t refusedAt_ = -1; ///< the step at which the pool found no memory; -1: none
    std::int64_t fitting_ = 0;    ///< steps that fitted since one did not
    std::string lastOutOfMemory_;
    bool pagesMoved_ = false; ///< since the trace was told
    bool idle_ = false;       ///< the last step was none
    bool finished_ = false;
};

} // namespace vitrine::engine
