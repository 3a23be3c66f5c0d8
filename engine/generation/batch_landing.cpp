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
                cache_->book()->publish(planned.sequence, row->history);
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
    GenerateResult& result = row.out.result;
    GeneratedToken token = addToken(model_.context().tracer(), row.number, row.history, result, id, logprob);
    token.time = time;
    ++counts_.generated;
    if (result.ids.size() == 1) {
        row.out.firstToken = time;
        trace_->request(row.number, base::RequestPhase::FirstToken, time, -1, counts_.steps - 1, 1);
    }
    AnswerStep step = takeToken(row.answer, row.request, result);
    token.text = std::move(step.piece.text);
    token.channel = std::move(step.piece.channel);
    if (onToken_) {
        onToken_(token);
    }
    // The callback may have cancelled it.
    if (step.finish != FinishReason::None && unended(token.request) != nullptr) {
        if (step.finish != FinishReason::Length) {
            scheduler_->stop(row.number);
        }
        endRow(row, step.finish, time, finishReasonName(step.finish));
    }
}

void BatchEngine::endRow(Row& row, FinishReason finish, base::TimeNs time, std::string_view reason) {
    row.out.result.finish = finish;
    row.out.end = time;
    if (row.answer) {
        row.out.result.channels = row.answer->channels();
    }
    if (swap_ != nullptr) {
        swap_->drop(row.number);
    }
    const bool cancelled = finish == FinishReason::Cancelled || finish == FinishReason::OutOfMemory;
    trace_->request(row.number, cancelled ? base::RequestPhase::Cancelled : base::RequestPhase::Finished, time, -1,
                    counts_.steps > 0 ? counts_.steps - 1 : -1, static_cast<std::int64_t>(row.out.result.ids.size()),
                    reason);
    row.history = {};
    if (onEnd_) {
        onEnd_(row.number);
    }
}

} // namespace vitrine::engine
