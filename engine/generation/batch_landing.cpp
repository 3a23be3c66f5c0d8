// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What becomes of a step of a batch: its tokens, its counts, the requests that end with it.

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/generation/batch_row.h"
#include "engine/generation/broken_numbers.h"

namespace vitrine::engine {

void BatchEngine::publish(const PendingStep& pending) {
    carryHalf_ = 1 - carryHalf_;
    if (cache_->book()->sharesPrefixes()) {
        for (const ScheduledRow& scheduled : pending.schedule.rows) {
            if (const ActiveRequest* request = unended(scheduled.request); request != nullptr) {
                cache_->book()->publish(scheduled.sequence, request->history());
                if (scheduled.keepsRings) {
                    cache_->book()->keepRings(scheduled.sequence);
                }
            }
        }
    }
    noteCache();
}

void BatchEngine::noteCache() {
    const PageBook& book = *cache_->book();
    counts_.mostUsedPages = std::max(counts_.mostUsedPages, book.counts().used);
    counts_.kvBytes = std::max(counts_.kvBytes, cache_->usedBytes());
    counts_.kvPageBytes = std::max(counts_.kvPageBytes, cache_->bytes());
    counts_.worstFragmentation = std::max(counts_.worstFragmentation, book.fragmentation());
}

void BatchEngine::landed(const PendingStep& pending, base::TimeNs begin, std::int64_t tokens) {
    bool samples = false;
    for (const ScheduledRow& scheduled : pending.schedule.rows) {
        samples = samples || scheduled.samples;
        if (scheduled.kind == RowKind::Padding) {
            counts_.paddingTokens += scheduled.tokens;
            continue;
        }
        counts_.prefillTokens += scheduled.kind == RowKind::Prefill ? scheduled.tokens : 0;
        if (Row* const row = unendedRow(scheduled.request); row != nullptr) {
            counts_.recomputedTokens += std::clamp<std::int64_t>(row->computed - scheduled.begin, 0, scheduled.tokens);
            row->computed = std::max(row->computed, scheduled.begin + scheduled.tokens - scheduled.drafts);
        }
    }
    lastDecodes_ = pending.decodes ? static_cast<std::int32_t>(pending.schedule.rows.size()) : 0;
    counts_.paddingTokens += pending.fill;
    ++counts_.steps;
    counts_.samplingSteps += samples ? 1 : 0;
    (pending.decodes ? counts_.decodeSeconds : counts_.prefillSeconds) += static_cast<double>(landedAt_ - begin) * 1e-9;
    trace_->step(pending.schedule, pending.moment, begin, landedAt_, static_cast<std::int32_t>(tokens), pending.fill);
}

void BatchEngine::accept(ActiveRequest& request, std::int32_t id, float logprob,
                         std::vector<std::pair<std::int32_t, float>> top) {
    TakenToken taken = request.take(model_.context().tracer(), id, logprob, std::move(top));
    const std::int32_t number = request.number();
    const base::TimeNs time = landedAt_;
    Row& row = rowOf(number);
    taken.token.time = time;
    ++counts_.generated;
    if (taken.token.index == 0) {
        row.out.firstToken = time;
        trace_->request(number, base::RequestChange::FirstToken, time, -1, counts_.steps - 1, 1);
    }
    if (onToken_) {
        onToken_(taken.token);
    }
    // The callback may have cancelled it.
    if (taken.finish != FinishReason::None && unended(number) != nullptr) {
        if (taken.finish != FinishReason::Length && taken.finish != FinishReason::Context) {
            scheduler_->stop(number);
        }
        endRow(row, taken.finish, time, finishReasonName(taken.finish));
    }
}

/// The step names are literals of step_engine.cpp.
void BatchEngine::broken(ActiveRequest& request, const PendingStep& pending) {
    broken_.push_back({request.number(), pending.batch.name, pending.schedule.index});
}

void BatchEngine::endBroken() {
    if (broken_.empty()) {
        return;
    }
    if (underWay() != nullptr) {
        landLast();
    }
    for (const BrokenStep& step : std::exchange(broken_, {})) {
        Row* const row = unendedRow(step.request);
        if (row == nullptr) {
            continue;
        }
        row->out.failure = brokenNumbers(model_, row->request.history(), step.name, step.index);
        if (!options_.survivesBrokenNumbers) {
            throw base::BadInput(row->out.failure);
        }
        ++counts_.failedRequests;
        pagesMoved_ = true;
        scheduler_->cancel(step.request);
        endRow(*row, FinishReason::Failed, now(), finishReasonName(FinishReason::Failed));
    }
}

void BatchEngine::endRow(Row& row, FinishReason finish, base::TimeNs time, std::string_view reason) {
    const std::int32_t number = row.request.number();
    row.request.end(finish);
    row.out.end = time;
    forgetDrafts(number);
    if (swap_ != nullptr) {
        swap_->drop(number);
    }
    const bool cancelled =
        finish == FinishReason::Cancelled || finish == FinishReason::OutOfMemory || finish == FinishReason::Failed;
    trace_->request(number, cancelled ? base::RequestChange::Cancelled : base::RequestChange::Finished, time, -1,
                    counts_.steps > 0 ? counts_.steps - 1 : -1, static_cast<std::int64_t>(row.out.result.ids.size()),
                    reason);
    if (onEnd_) {
        onEnd_(number);
    }
}

} // namespace vitrine::engine
