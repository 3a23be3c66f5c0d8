// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What becomes of a step of a batch: its tokens, its counts, the requests that end with it.

#include <algorithm>

#include "engine/generation/batch_flight.h"

namespace vitrine::engine {

void BatchEngine::publish(const Flight& flight) {
    carryHalf_ = 1 - carryHalf_;
    if (cache_->book()->sharesPrefixes()) {
        for (const PlannedRow& planned : flight.plan.rows) {
            if (const Row* row = unended(planned.request); row != nullptr) {
                cache_->book()->publish(planned.sequence, row->request.history());
                if (planned.keepsRings) {
                    cache_->book()->keepRings(planned.sequence);
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

/// Takes a step's tokens.
void BatchEngine::land(const StepOutput& out, Flight& flight) {
    const base::TimeNs begin = std::max(flight.launched, landed_);
    landed_ = std::max(now(), begin);
    std::int32_t sampled = 0;
    for (const std::int32_t request : flight.sampled) {
        sampled += unended(request) != nullptr ? 1 : 0;
    }
    bool samples = false;
    for (const PlannedRow& planned : flight.plan.rows) {
        samples = samples || planned.samples;
        if (planned.kind == RowKind::Padding) {
            counts_.paddingTokens += planned.tokens;
            continue;
        }
        counts_.prefillTokens += planned.kind == RowKind::Prefill ? planned.tokens : 0;
        if (Row* const row = unended(planned.request); row != nullptr) {
            counts_.recomputedTokens += std::clamp<std::int64_t>(row->computed - planned.begin, 0, planned.tokens);
            row->computed = std::max(row->computed, planned.begin + planned.tokens);
        }
    }
    counts_.paddingTokens += flight.fill;
    ++counts_.steps;
    counts_.samplingSteps += samples ? 1 : 0;
    (flight.decodes ? counts_.decodeSeconds : counts_.prefillSeconds) += static_cast<double>(landed_ - begin) * 1e-9;
    trace_->step(flight.plan, flight.moment, begin, landed_, sampled, flight.fill);
    for (std::size_t i = 0; i < flight.sampled.size(); ++i) {
        if (Row* const row = unended(flight.sampled[i]); row != nullptr) {
            accept(*row, out.ids[i], out.logprobs.empty() ? 0 : out.logprobs[i], landed_);
        }
    }
}

void BatchEngine::accept(Row& row, std::int32_t id, float logprob, base::TimeNs time) {
    TakenToken taken = row.request.take(model_.context().tracer(), id, logprob);
    const std::int32_t number = row.request.number();
    taken.token.time = time;
    ++counts_.generated;
    if (taken.token.index == 0) {
        row.out.firstToken = time;
        trace_->request(number, base::RequestPhase::FirstToken, time, -1, counts_.steps - 1, 1);
    }
    if (onToken_) {
        onToken_(taken.token);
    }
    // The callback may have cancelled it.
    if (taken.finish != FinishReason::None && unended(number) != nullptr) {
        if (taken.finish != FinishReason::Length) {
            scheduler_->stop(number);
        }
        endRow(row, taken.finish, time, finishReasonName(taken.finish));
    }
}

void BatchEngine::endRow(Row& row, FinishReason finish, base::TimeNs time, std::string_view reason) {
    const std::int32_t number = row.request.number();
    row.request.end(finish);
    row.out.end = time;
    if (swap_ != nullptr) {
        swap_->drop(number);
    }
    const bool cancelled = finish == FinishReason::Cancelled || finish == FinishReason::OutOfMemory;
    trace_->request(number, cancelled ? base::RequestPhase::Cancelled : base::RequestPhase::Finished, time, -1,
                    counts_.steps > 0 ? counts_.steps - 1 : -1, static_cast<std::int64_t>(row.out.result.ids.size()),
                    reason);
    if (onEnd_) {
        onEnd_(number);
    }
}

} // namespace vitrine::engine
