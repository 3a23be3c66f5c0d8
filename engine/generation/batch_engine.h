// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Serves requests that come at any time with one model. A Scheduler decides which tokens each step has; the engine runs
// the step.
//
// Batches. One ragged step holds pieces of prompts and single tokens of decoding requests.
//
// Steps ahead. On CUDA the engine launches a step before the host has read the ids that the step before it samples.
// These ids stay on the device, and the host schedules while the device works. So the host sees a stop token or a stop
// text one step late, and tokens that were sampled after it are dropped. Steps that read prompts are launched ahead
// too. Some steps wait for the step before them: steps with a repetition penalty, the first steps of a kind, and steps
// that need a larger step arena. With speculation, steps wait unless all decoding requests rest (draft_pace.h).
//
// Buckets. On devices with graphs (DeviceFeatures::fewStepSizes) a decode step is filled up to the next of a few
// numbers of rows, so that few captured graphs serve all decode steps. The added rows belong to no request. Meta with
// the traits of such a device adds the same rows. Where rotary frequencies are dynamic, ops are launched one by one and
// no graph is used.
//
// Independence. A request's tokens do not depend on the mode, the order, the slots, preemption, shared prefixes or
// other requests, except for rounding. A product over another number of rows may sum in another order (on the CPU: up
// to eight rows, or more). Logits in float32 then differ in their last bits. Logits in bf16, or over a KV cache of
// 8-bit values, differ by some hundredths. Such a difference can change a token when the two best logits are close.
//
// Memory. The constructor decides how much memory the steps and the pool of pages may take (fitBatch). When memory is
// too small for both, steps are smaller and pages fewer from the beginning, or the constructor throws OutOfMemory.
// Other programs may take memory later, so a step may still not fit. This is known before its first kernel. With
// `survivesOutOfMemory` the engine schedules the step again with half the tokens. A step of one token that does not fit
// ends its request with OutOfMemory, and the other requests go on. Steps stay small for some time. Without
// `survivesOutOfMemory` step() throws, and the engine serves no more. When the pool finds no memory for more pages, it
// keeps its size for some time. Requests that would not fit into this pool even alone end with OutOfMemory in the same
// way.
//
// An engine belongs to the thread of its model's context. The caller calls add() and cancel() between two calls of
// step().

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cache/kv_swap.h"
#include "engine/generation/batch_trace.h"
#include "engine/generation/generator.h"
#include "engine/generation/scheduler.h"
#include "engine/generation/step_engine.h"

namespace vitrine::engine {

struct BatchOptions {
    SchedulerOptions scheduler;
    Speculation speculation; ///< only in mode Continuous; not for models with dynamic rotary frequencies
    /// The engine sets the kind to Paged. Where poolPages or poolSequences is 0, fitBatch() chooses it.
    KvCacheOptions cache;
    AnswerForm answerForm = AnswerForm::Plain;
    base::ProgressSink* progress = nullptr; ///< receives the progress of compiling kernels
    /// Whether the engine goes on after a step that does not fit into memory; only in mode Continuous.
    bool survivesOutOfMemory = false;
    /// Whether a request whose logits are not finite ends with Failed while the others go on. Else step() throws
    /// BadInput.
    bool survivesBrokenNumbers = false;
    /// Tokens of the longest prompt that will come, and of the longest prompt together with its answer; 0: not known.
    /// Memory and kernels are prepared for them before the first step.
    std::int64_t longestPrompt = 0;
    std::int64_t longestSequence = 0;
    std::int64_t mostForbidden = 0; ///< the largest number of ids that one request forbids
    bool experts = false;           ///< requests will ask for their experts: memory and kernels are prepared for that
    /// For plans on Meta that are not recorded: skips steps that are like the step before, and advances the clock by
    /// their time. The ids of the skipped tokens are 0, and nobody is told of them.
    bool jumpEqualSteps = false;
};

/// The result of one request. Times are on the context's clock; -1: this has not happened.
struct BatchResult {
    GenerateResult result;
    std::string refusal; ///< why the request was refused; empty: it was not refused
    std::string failure; ///< why the request ended with OutOfMemory or Failed while others go on; empty: it did not
    base::TimeNs arrival = 0;
    base::TimeNs admitted = -1;
    base::TimeNs firstToken = -1;
    base::TimeNs end = -1;
    std::int32_t preemptions = 0;
    std::int64_t sharedTokens = 0; ///< of its prompt, whose pages another request had computed
};

struct BatchCounts {
    std::int64_t steps = 0;
    std::int64_t samplingSteps = 0; ///< steps in which a request could get a token
    std::int64_t aheadSteps = 0;    ///< launched before the ids of the step before were read
    std::int64_t generated = 0;
    std::int64_t prefillTokens = 0;
    std::int64_t recomputedTokens = 0; ///< tokens that were computed before, and lost by a preemption
    std::int64_t paddingTokens = 0;
    std::int64_t sharedTokens = 0;    ///< tokens of prompts that were found in known pages, and so were not computed
    std::int64_t sharingRequests = 0; ///< requests that had such tokens
    std::int64_t preemptions = 0;
    std::int64_t swaps = 0;
    std::uint64_t swapBytes = 0; ///< to the host and back
    std::int64_t mostSwappedPages = 0;
    std::uint64_t swapHostBytes = 0; ///< host memory that was taken for swapped pages
    std::int64_t mostUsedPages = 0;
    std::uint64_t kvBytes = 0;     ///< largest sum over the tokens in the cache
    std::uint64_t kvPageBytes = 0; ///< largest sum over the pages in use
    double worstFragmentation = 0;
    /// Steps that did not fit into memory and were scheduled again, and pools that could not grow.
    std::int64_t outOfMemorySteps = 0;
    std::int64_t failedRequests = 0; ///< requests that ended with OutOfMemory, or with Failed while others went on
    std::int64_t lostSwaps = 0;      ///< preempted requests for whose pages the host had no memory
    double prefillSeconds = 0;       ///< time of steps that read prompts
    double decodeSeconds = 0;        ///< time of the other steps
};

class BatchEngine final : private StepEngine {
public:
    /// Makes the KV cache. The model must outlive the engine. `tokenizer` may be null: texts are then empty. Throws
    /// OutOfMemory, and Unsupported when the options speculate where that is not possible.
    BatchEngine(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const BatchOptions& options);
    ~BatchEngine() override;
    BatchEngine(const BatchEngine&) = delete; // owns a cache on the model's context
    BatchEngine& operator=(const BatchEngine&) = delete;

    /// Compiles the kernels of the steps that are likely to come. Does nothing on a context that compiles no kernels.
    void prepare();

    /// Adds a request and returns its number. Numbers count from 0 and are the request numbers of sampling. `arrival`
    /// is when the request arrived, which may be before this call.
    std::int32_t add(GenerateRequest request, base::TimeNs arrival);
    /// Adds a request that the caller refuses for `reason`, and returns its number.
    std::int32_t refuse(const std::string& reason, base::TimeNs arrival);
    /// Says that no more requests will come. Until then a static batch waits until there are as many requests as slots.
    void close() { scheduler_->close(); }
    /// Cancels a request. Its pages and its slot are free when the call returns. Does nothing when the request has
    /// ended.
    void cancel(std::int32_t request);

    /// Schedules one step, launches or runs it, and gives the tokens of a step that has ended to the requests. Returns
    /// false when there is nothing to do until a request arrives. Throws what Model::step throws (with
    /// survivesOutOfMemory, no OutOfMemory of a step). After an exception the engine serves no more, and the results of
    /// requests that had not ended stay as they are.
    bool step();
    /// The steps that jumpEqualSteps skips end before `time`, when the next request arrives.
    void jumpUntil(base::TimeNs time) { jumpUntil_ = time; }

    /// Sets a callback that is called after each token of a request. The callback must not throw. It may call cancel().
    void onToken(TokenCallback callback) { onToken_ = std::move(callback); }
    /// Sets a callback that is called when a request has ended, but not when it was refused. The callback must not
    /// throw.
    void onEnd(std::function<void(std::int32_t request)> callback) { onEnd_ = std::move(callback); }

    const BatchResult& result(std::int32_t request) const;
    bool ended(std::int32_t request) const { return scheduler_->ended(request); }
    /// Returns the result of a request that has ended and frees the engine's memory of the request. A server calls it
    /// so that memory does not grow.
    BatchResult takeResult(std::int32_t request);
    const BatchCounts& counts() const { return counts_; }
    const SpeculationCounts& speculation() const { return speculated_; }
    /// The message of the last OutOfMemory that the engine survived; empty: there was none.
    const std::string& lastOutOfMemory() const { return lastOutOfMemory_; }
    const BatchOptions& options() const { return options_; }
    const Scheduler& scheduler() const { return *scheduler_; }
    const KvCache& cache() const { return *cache_; }
    /// Reports what each slot has done until now. The time after this call belongs to new events, which another
    /// recording may receive.
    void reportSlots() { trace_->finish(); }
    /// Waits for the device and reports what each slot has done. The destructor calls it too.
    void finish() noexcept;
    /// Called after an error. Every request that had not ended gets `reason` as its finish reason.
    void abandon(FinishReason reason);

private:
    struct Row;

    std::vector<ActiveRequest*> draftingRequests();
    void offerDrafts();
    void dropGraphs();
    void forgetDrafts(std::int32_t request);
    bool runStep();
    std::int64_t stepsToJump() const;
    bool staysAlike(std::int64_t steps) const;
    std::vector<KvAppend> appendsOfRunning(std::int64_t tokens) const;
    std::int64_t skipSteps(std::int64_t steps);
    void makeMoves(StepSchedule& schedule);
    void moveOut(const PageMove& move, StepSchedule& schedule);
    ActiveRequest* unended(std::int32_t request) const override;
    std::int32_t topLogprobsOf(const ActiveRequest& request) const override { return request.request().topLogprobs; }
    bool lives(const ScheduledRow& scheduled) const override { return cache_->book()->live(scheduled.sequence); }
    void complete(PendingStep& pending) override;
    bool launch(const PendingStep& pending) override;
    void ran(const PendingStep& pending) override;
    void entered(const PendingStep& pending) override;
    void landed(const PendingStep& pending, base::TimeNs begin, std::int64_t tokens) override;
    void accept(ActiveRequest& request, std::int32_t id, float logprob,
                std::vector<std::pair<std::int32_t, float>> top) override;
    void rollBack(ActiveRequest& request, std::int64_t rejected) override;
    void broken(ActiveRequest& request, const PendingStep& pending) override;
    void endBroken();
    void retrySmaller(const PendingStep& pending, const base::OutOfMemory& error);
    void raiseTokenLimit();
    void mapWholePool();
    void mapPagesOfNextStep();
    void endRequestsThatCannotFit(int group, std::int64_t pages);
    void liftPoolLimits();
    void reportSchedule(const StepSchedule& schedule);
    std::unique_ptr<PendingStep> preparePendingStep(StepSchedule schedule);
    void endRow(Row& row, FinishReason finish, base::TimeNs time, std::string_view reason);
    void publish(const PendingStep& pending);
    void noteCache();
    std::int32_t mostTopLogprobs(const PendingStep& pending) const;
    std::int32_t mostDecodes() const; ///< the most rows that requests have in one decode step
    Row& rowOf(std::int32_t request) { return *rows_.at(request); }
    BatchResult& addRefused(std::int32_t number, const std::string& reason, base::TimeNs arrival);
    Row* unendedRow(std::int32_t request) const;

    std::shared_ptr<const Tokenizer> tokenizer_;
    BatchOptions options_;
    std::unique_ptr<Scheduler> scheduler_;
    std::unique_ptr<BatchTrace> trace_;
    std::map<std::int32_t, std::unique_ptr<Row>> rows_;
    std::unique_ptr<KvSwap> swap_; ///< null: pages are not swapped
    int fillSequence_ = -1;        ///< sequence of the rows that fill a step up to a bucket
    bool buckets_ = false;
    std::unique_ptr<kernels::Arena> carryArena_;
    kernels::Tensor carry_; ///< (2, rows) I32: ids that a step leaves for the next one; the two halves take turns
    std::int64_t carryRows_ = 0;
    int carryHalf_ = 0;
    BatchCounts counts_;
    TokenCallback onToken_;
    std::function<void(std::int32_t)> onEnd_;
    /// Number of the step at which the pool found no memory; -1: the pool has not been limited.
    std::int64_t refusedAt_ = -1;
    std::int64_t fitting_ = 0; ///< steps that fitted since the last one that did not
    std::string lastOutOfMemory_;
    struct BrokenStep {
        std::int32_t request = 0;
        std::string_view name; ///< of the step
        std::int64_t index = 0;
    };
    std::vector<BrokenStep> broken_; ///< what gave logits that are not finite since endBroken()
    bool pagesMoved_ = false;        ///< pages changed hands since the cache reported them last
    bool idle_ = false;              ///< the last call of step() had nothing to do
    bool finished_ = false;
    base::TimeNs jumpUntil_ = 0;
    base::TimeNs lastTook_ = 0;    ///< time of the last call of runStep()
    std::int32_t lastDecodes_ = 0; ///< rows of the last step; 0: not all of them decode
};

} // namespace vitrine::engine
