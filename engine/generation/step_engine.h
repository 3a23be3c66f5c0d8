// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs scheduled steps for requests: the part that every way of generating shares. From a schedule it makes the step's
// inputs, launches the step or runs it, and gives each request the token that was sampled for it.
//
// Where the context runs ahead, a step is launched before the host has read the ids of the step before it, and its
// requests get their tokens while the next step is scheduled. So one step at most is under way between two calls.
// Derived classes schedule steps (BatchEngine: requests that come at any time; GenerateEngine: requests that begin
// together) and says what a token, and a step that has landed, mean there. Belongs to the thread of the model's
// context.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/cache/kv_cache.h"
#include "engine/generation/active_request.h"
#include "engine/generation/batch_trace.h"
#include "engine/generation/scheduler.h"
#include "engine/model/model.h"

namespace vitrine::engine {

/// What a row without a token of its own reads; any id will do.
inline constexpr std::int32_t kNoToken = 0;

/// A step from its schedule to its tokens.
struct PendingStep {
    StepSchedule schedule;
    bool decodes = false; ///< single tokens only
    bool known = true;    ///< but for ids that the device carries over
    base::TimeNs launched = 0;
    StepBatch batch;
    std::vector<kernels::SampleParameters> sampling;
    std::vector<CarriedIds> carried;
    std::vector<std::int32_t> padding;
    std::vector<std::int32_t> sampled; ///< request of each row of logits; -1: padding
    std::int32_t fill = 0;             ///< rows that only make the batch as large as a bucket
    const std::int32_t* ids = nullptr; ///< where the device keeps the sampled ids for the next step; null: it does not
    BatchMoment moment;                ///< when the step was scheduled
};

class StepEngine {
protected:
    explicit StepEngine(Model& model) : model_(model) {}
    virtual ~StepEngine() = default;
    StepEngine(const StepEngine&) = delete; // steps under way view its requests
    StepEngine& operator=(const StepEngine&) = delete;

    /// Launches the step or, when the one under way has landed, runs it; then a step lands: this one if it was run,
    /// else the one before it. Throws what Model::step throws; `next` is there still when the step could not be run.
    void advance(std::unique_ptr<PendingStep>& next);
    /// Waits for the step under way and gives its tokens out. REQUIRES one.
    void landLast();
    const PendingStep* underWay() const { return pending_.get(); }
    /// Waits for what was launched and forgets it.
    void drop() noexcept;
    base::TimeNs now() const { return model_.context().clock().now(); }

    /// The request of this number; null for one that has ended, and for -1.
    virtual ActiveRequest* unended(std::int32_t request) const = 0;
    /// Whether the row's sequence is still in the cache.
    virtual bool lives(const ScheduledRow& scheduled) const = 0;
    /// The pending step has the rows of its schedule; what else belongs to its batch is added.
    virtual void complete(PendingStep& pending) = 0;
    /// Launches the step if it can be. False, and nothing happened, where it cannot.
    virtual bool launch(const PendingStep& pending) = 0;
    /// The step was run at once, instead of being launched.
    virtual void ran(const PendingStep& pending) = 0;
    /// The cache has the step's tokens.
    virtual void entered(const PendingStep& pending) = 0;
    /// The step has ended, and its tokens come next. `begin`: when the device could begin with it.
    virtual void landed(const PendingStep& pending, base::TimeNs begin) = 0;
    /// The request takes a token.
    virtual void accept(ActiveRequest& request, std::int32_t id, float logprob,
                        std::vector<std::pair<std::int32_t, float>> top) = 0;

    /// Whether the step may be launched without knowing what the one before it sampled.
    bool mayLaunch(const PendingStep& pending) const;

    Model& model_;
    std::unique_ptr<KvCache> cache_;
    base::TimeNs landedAt_ = 0; ///< when the last step ended

private:
    bool run(PendingStep& pending, bool& launched, StepOutput& out);
    void fill(PendingStep& pending);
    void land(const StepOutput& out, const PendingStep& pending);

    std::unique_ptr<PendingStep> pending_; ///< launched and not read
};

} // namespace vitrine::engine
