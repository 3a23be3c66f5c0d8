// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a step of a batch has beside the rows of its schedule, and the steps that are compiled before the first.

#include <algorithm>

#include "engine/generation/batch_pool.h"
#include "engine/generation/batch_row.h"

namespace vitrine::engine {
namespace {

/// Steps that are likely to come: single tokens in every bucket, and with whole drafts behind them, and prompts of
/// several lengths beside a full batch.
std::vector<StepBatch> likelySteps(const BatchOptions& options, std::int32_t mostDecodes,
                                   std::vector<std::int32_t>& tokens) {
    const std::int32_t slots = options.scheduler.slots;
    const std::int64_t budget = options.scheduler.tokenBudget;
    const std::int64_t prompts = options.longestPrompt > 0 ? std::min(budget, options.longestPrompt * slots)
                                                           : std::min<std::int64_t>(budget, 8192);
    const std::int64_t checked = options.speculation.on() ? 1 + options.speculation.draftTokens : 1;
    tokens.assign(static_cast<std::size_t>(std::max(prompts, checked)), kNoToken);
    std::vector<StepBatch> steps;
    const auto add = [&](std::int32_t rows, std::int64_t ofRow, std::int64_t prompt) {
        StepBatch& step = steps.emplace_back();
        step.name = prompt > 0 ? "mixed" : "decode";
        step.experts = options.experts;
        for (std::int32_t i = 0; i < rows; ++i) {
            StepSequence& sequence = step.sequences.emplace_back();
            sequence.sequence = i;
            sequence.tokens = {tokens.data(), static_cast<std::size_t>(ofRow)};
            sequence.logitTokens = ofRow;
        }
        if (prompt > 0) {
            step.sequences.push_back({slots, {tokens.data(), static_cast<std::size_t>(prompt)}});
        }
    };
    for (std::int32_t rows = 1; rows <= mostDecodes; ++rows) {
        if (bucketRows(rows, mostDecodes) == rows) {
            add(rows, 1, 0);
            if (checked > 1 && rows * checked <= budget) {
                add(rows, checked, 0);
            }
        }
    }
    for (std::int64_t prompt = 16; prompt <= prompts; prompt *= 2) {
        add(0, 1, prompt);
        add(std::max(slots - 1, 1), 1, prompt);
    }
    return steps;
}

/// Every row of logits is sampled greedily. The steps view the result.
std::vector<kernels::SampleParameters> sampleGreedily(std::vector<StepBatch>& steps) {
    std::vector<std::size_t> rows;
    for (const StepBatch& step : steps) {
        std::int64_t count = 0;
        for (const StepSequence& sequence : step.sequences) {
            count += sequence.logitTokens;
        }
        rows.push_back(static_cast<std::size_t>(count));
    }
    std::vector<kernels::SampleParameters> greedy(rows.empty() ? 0 : std::ranges::max(rows));
    for (std::size_t i = 0; i < steps.size(); ++i) {
        steps[i].sampling = std::span(greedy).first(rows[i]);
    }
    return greedy;
}

/// Rows that bring the step up to a bucket. None beyond the budget of tokens, for which the step arena was sized.
std::int32_t rowsToFill(const StepSchedule& schedule, std::int32_t mostRows, const SchedulerOptions& options) {
    const auto rows = static_cast<std::int32_t>(schedule.rows.size());
    const std::int32_t fill = bucketRows(rows, mostRows) - rows;
    return schedule.tokens() + fill <= options.tokenBudget ? fill : 0;
}

/// How many a step reports where so many are wanted: few numbers, so that there are few kinds of steps.
std::int32_t reportedLogprobs(std::int32_t wanted) {
    constexpr std::int32_t kFew = 5;
    constexpr std::int32_t kMany = 20;
    return wanted == 0 ? 0 : wanted <= kFew ? kFew : std::max(wanted, kMany);
}

/// Where the device keeps the ids that the step under way samples for rows of this one.
std::vector<CarriedIds> carriedBy(const PendingStep& pending, const PendingStep* last) {
    std::vector<CarriedIds> out;
    if (last == nullptr) {
        return out;
    }
    for (std::size_t i = 0; i < pending.schedule.rows.size(); ++i) {
        const ScheduledRow& scheduled = pending.schedule.rows[i];
        const auto from = std::find(last->sampled.begin(), last->sampled.end(), scheduled.request);
        if (scheduled.request < 0 || scheduled.kind != RowKind::Decode || from == last->sampled.end()) {
            continue;
        }
        const std::int32_t* const ids = last->ids + (from - last->sampled.begin());
        const auto token = static_cast<std::int64_t>(i);
        if (!out.empty() && out.back().token + out.back().count == token && out.back().ids + out.back().count == ids) {
            ++out.back().count;
        } else {
            out.push_back({token, 1, ids});
        }
    }
    return out;
}

} // namespace

void BatchEngine::prepare() {
    if (!model_.context().can().compilesKernels) {
        return;
    }
    std::vector<std::int32_t> tokens;
    std::vector<StepBatch> steps = likelySteps(options_, mostDecodes(), tokens);
    const std::vector<kernels::SampleParameters> greedy = sampleGreedily(steps);
    KvCacheOptions cache = options_.cache;
    cache.kind = KvCacheKind::Dynamic; // kernels do not know the difference, and nothing has to fit
    model_.prepare(steps, cache, options_.progress);
}

std::unique_ptr<PendingStep> BatchEngine::preparePendingStep(StepSchedule schedule) {
    auto pending = std::make_unique<PendingStep>();
    pending->schedule = std::move(schedule);
    pending->moment = {scheduler_->queued(), scheduler_->running(), scheduler_->preempted(), cache_->book()->counts()};
    return pending;
}

std::int32_t BatchEngine::mostDecodes() const {
    const SchedulerOptions& scheduler = options_.scheduler;
    return static_cast<std::int32_t>(std::min<std::int64_t>(scheduler.slots, scheduler.tokenBudget));
}

/// What the step reports for each row: what its requests want.
std::int32_t BatchEngine::mostTopLogprobs(const PendingStep& pending) const {
    std::int32_t most = 0;
    const auto look = [&](std::int32_t number) {
        const ActiveRequest* const request = unended(number);
        most = std::max(most, request == nullptr ? 0 : request->request().topLogprobs);
    };
    std::ranges::for_each(pending.sampled, look);
    std::ranges::for_each(pending.scored, look, &PendingStep::ScoredRow::request);
    return static_cast<std::int32_t>(std::min<std::int64_t>(reportedLogprobs(most), model_.config().vocab));
}

/// Rows that fill the step up to a bucket, and the ids that stay on the device.
void BatchEngine::complete(PendingStep& pending) {
    StepBatch& batch = pending.batch;
    pending.fill = buckets_ && pending.decodes ? rowsToFill(pending.schedule, mostDecodes(), options_.scheduler) : 0;
    for (std::int32_t i = 0; i < pending.fill; ++i) {
        StepSequence fill{fillSequence_, {pending.padding.data(), 1}, true};
        fill.keep = false;
        batch.sequences.push_back(fill);
        pending.sampled.push_back(-1);
        pending.sampling.emplace_back();
    }
    batch.topLogprobs = mostTopLogprobs(pending);
    pending.carried = carriedBy(pending, underWay());
    if (model_.context().can().runsAhead && !pending.drafts &&
        pending.scored.empty()) { // else the next step waits for the ids
        batch.idsOut = carry_.view().as<std::int32_t>() + carryHalf_ * carryRows_;
        pending.ids = batch.idsOut;
    }
}

} // namespace vitrine::engine
