// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs scheduled steps for requests. It is the base of all engines that generate tokens. From a schedule it makes the
// batch of the step, launches or runs the step, and gives each request the token that was sampled for it.
//
// On a context that runs ahead, the engine launches a step before it reads the ids of the step before. The requests get
// these ids while the device works on the new step. So at most one step is pending between two calls.
//
// With speculation a row of a decoding request may have drafted tokens behind its own one. The engine then keeps what
// is right of them (acceptance.h) and takes the others back. A step with drafts is not launched ahead, because a draft
// follows from the tokens of the step before. A step without drafts is.
//
// A derived class schedules the steps, and it decides what happens when a step has ended and when a request gets a
// token. BatchEngine serves requests that come at any time, GenerateEngine requests that begin together. An engine
// belongs to the thread of the model's context.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/cache/kv_cache.h"
#include "engine/generation/active_request.h"
#include "engine/generation/batch_trace.h"
#include "engine/generation/check_cost.h"
#include "engine/generation/scheduler.h"
#include "engine/generation/speculation.h"
#include "engine/model/model.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

/// The token id of rows whose token is not known on the host, or that belong to no request. Any valid id would do.
inline constexpr std::int32_t kNoToken = 0;

/// A step, from its schedule until its tokens are given to the requests.
struct PendingStep {
    StepSchedule schedule;
    bool decodes = false; ///< every row belongs to a decoding request; no row reads a prompt
    bool drafts = false;  ///< some row has drafted tokens
    bool known = true;    ///< the host knows all token ids, except those that a pending step samples for a decode row
    base::TimeNs launched = 0; ///< when the step was launched or began to run
    base::TimeNs once = 0;     ///< Context::onceTime() then
    StepBatch batch;
    std::vector<kernels::SampleParameters> sampling;
    std::vector<CarriedIds> carried;
    std::vector<std::int32_t> padding;
    /// Request of each row of logits; -1: padding. A row with a draft has several rows of logits, one after the other.
    std::vector<std::int32_t> sampled;
    /// A row of logits that scores a token of a prompt: the one after this position.
    struct ScoredRow {
        std::size_t row = 0;
        std::int32_t request = 0;
        std::int64_t position = 0;
    };
    std::vector<ScoredRow> scored; ///< `sampled` has -1 in their places
    std::int32_t fill = 0;         ///< rows that belong to no request and fill the step up to a bucket
    /// Device memory that keeps the sampled ids for the next step; null: there is none.
    const std::int32_t* ids = nullptr;
    BatchMoment moment; ///< the numbers of requests and pages when the step was scheduled
};

class StepEngine {
public:
    virtual ~StepEngine() = default;

protected:
    StepEngine(Model& model, const Speculation& speculation);
    StepEngine(const StepEngine&) = delete; // steps under way view its requests
    StepEngine& operator=(const StepEngine&) = delete;

    /// Launches the step `next` if it can be launched ahead, and gives the tokens of the step that was pending to the
    /// requests. Otherwise it first ends the pending step, runs `next` and gives the tokens of `next` to the requests.
    /// Throws what Model::step throws. After an exception `next` is null if its step was launched, and unchanged if its
    /// step could not run.
    void advance(std::unique_ptr<PendingStep>& next);
    /// Waits for the pending step and gives its tokens to the requests. REQUIRES a pending step.
    void landLast();
    /// The pending step; null: there is none.
    const PendingStep* underWay() const { return pending_.get(); }
    /// Waits for the pending step and drops its results.
    void drop() noexcept;
    base::TimeNs now() const { return model_.context().clock().now(); }

    /// The request of this number. Null when it has ended, and for -1.
    virtual ActiveRequest* unended(std::int32_t request) const = 0;
    /// How many of the best tokens the request wants beside each token; the batch of a step has as many at least.
    virtual std::int32_t topLogprobsOf(const ActiveRequest& request) const = 0;
    /// Whether the row's sequence is still in the cache.
    virtual bool lives(const ScheduledRow& scheduled) const = 0;
    /// Called when the batch of a step has the rows of its schedule. Adds what else the engine wants in the batch.
    virtual void complete(PendingStep& pending) = 0;
    /// Launches the step ahead (Model::launch). False when the step cannot be launched.
    virtual bool launch(const PendingStep& pending) = 0;
    /// Called when the step was run at once instead of launched.
    virtual void ran(const PendingStep& pending) = 0;
    /// Called when the step was launched or run, so that the cache has its tokens.
    virtual void entered(const PendingStep& pending) = 0;
    /// Called when the step has ended, before its tokens are given to the requests. `begin` is when the device could
    /// begin with the step, `tokens` how many tokens it gives to requests that have not ended.
    virtual void landed(const PendingStep& pending, base::TimeNs begin, std::int64_t tokens) = 0;
    /// Gives a token to the request.
    virtual void accept(ActiveRequest& request, std::int32_t id, float logprob,
                        std::vector<std::pair<std::int32_t, float>> top) = 0;

    /// Called when a step has checked a draft of a request that goes on, after accept() for each token that was kept.
    /// Takes the keys and values of `rejected` tokens back.
    virtual void rollBack(ActiveRequest& request, std::int64_t rejected) = 0;
    /// Called in place of accept() when a logit of the request's row was not finite.
    virtual void broken(ActiveRequest& request, const PendingStep& pending) = 0;

    /// Whether the step may be launched before the host knows what the step before it sampled.
    bool mayLaunch(const PendingStep& pending) const;

    /// Whether none of the requests has a draft in the next step, whatever their pending tokens are. Such a step may
    /// be launched ahead.
    static bool allRest(std::span<ActiveRequest* const> requests);
    /// Drafts tokens for requests that decode, in place of those that were drafted before. Each draft is shorter than
    /// what remains of its request. REQUIRES no pending step, or allRest().
    void draft(std::span<ActiveRequest* const> requests);

    Model& model_;
    Speculation speculation_;
    SpeculationCounts speculated_;
    std::unique_ptr<KvCache> cache_;
    base::TimeNs landedAt_ = 0; ///< when the last step ended, on the context's clock

private:
    bool run(PendingStep& pending, bool& launched, StepOutput& out);
    void fill(PendingStep& pending);
    void addRow(PendingStep& pending, const ScheduledRow& scheduled);
    static void addLogits(PendingStep& pending, const ScheduledRow& scheduled, const ActiveRequest* request,
                          bool known);
    void land(const StepOutput& out, const PendingStep& pending);
    void giveExperts(const StepOutput& out, const PendingStep& pending) const;
    std::vector<std::int32_t> giveScores(const StepOutput& out, const PendingStep& pending);
    struct RequestRows;
    std::vector<RequestRows> requestRows(const StepOutput& out, const PendingStep& pending) const;
    std::int64_t keep(const StepOutput& out, const PendingStep& pending, const RequestRows& rows) const;
    void give(const StepOutput& out, const PendingStep& pending, RequestRows& rows);
    bool take(const StepOutput& out, const PendingStep& pending, std::size_t row);
    static std::vector<std::pair<std::int32_t, float>> bestOf(const StepOutput& out, const PendingStep& pending,
                                                              std::size_t row, std::int32_t wanted);
    void noteDrafts(const PendingStep& pending, std::span<const RequestRows> requests, double seconds);
    bool wantsPlainStep() const;
    void fillDrafts(std::span<ActiveRequest* const> requests) const;

    CheckCosts checkCosts_;
    std::unique_ptr<PendingStep> pending_; ///< launched, and its results are not read; null: none
};

} // namespace vitrine::engine
