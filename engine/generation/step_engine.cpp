// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/step_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vitrine::engine {
namespace {

bool isPrefill(const ScheduledRow& scheduled) {
    return scheduled.kind == RowKind::Prefill || scheduled.request < 0;
}

} // namespace

void StepEngine::drop() noexcept {
    model_.dropLaunched();
    pending_.reset();
}

void StepEngine::advance(std::unique_ptr<PendingStep>& next) {
    bool launched = false;
    StepOutput out;
    if (!run(*next, launched, out)) {
        return;
    }
    entered(*next);
    if (!launched) {
        land(out, *next);
        return;
    }
    const std::unique_ptr<PendingStep> last = std::exchange(pending_, std::move(next));
    if (last != nullptr) {
        land(model_.finishLaunched(), *last);
    }
}

/// Launches the step after the pending one or, when that has ended, runs it. False when nothing is left of it.
bool StepEngine::run(PendingStep& pending, bool& launched, StepOutput& out) {
    fill(pending);
    if (mayLaunch(pending) && launch(pending)) {
        launched = true;
        return true;
    }
    if (pending_ != nullptr) {
        landLast();
        fill(pending); // its ids are known now, and some of its requests may have ended
        if (pending.batch.sequences.empty()) {
            return false;
        }
    }
    pending.launched = now();
    out = model_.step(pending.batch, *cache_);
    ran(pending);
    return true;
}

void StepEngine::landLast() {
    const std::unique_ptr<PendingStep> last = std::move(pending_);
    land(model_.finishLaunched(), *last);
}

bool StepEngine::mayLaunch(const PendingStep& pending) const {
    return pending.known && std::none_of(pending.sampling.begin(), pending.sampling.end(), kernels::needsHistory);
}

/// The step's sequences and sampled rows, from its schedule and from what is known by now.
void StepEngine::fill(PendingStep& pending) {
    // Requests that ended meanwhile have no sequence any more.
    std::erase_if(pending.schedule.rows, [this](const ScheduledRow& scheduled) { return !lives(scheduled); });
    const std::vector<ScheduledRow>& rows = pending.schedule.rows;
    const bool anyPrefill = std::any_of(rows.begin(), rows.end(), isPrefill);
    pending.decodes = !anyPrefill;
    pending.known = true;
    pending.sampled.clear();
    pending.sampling.clear();
    StepBatch& batch = pending.batch;
    batch = {};
    batch.name = !anyPrefill ? "decode" : std::all_of(rows.begin(), rows.end(), isPrefill) ? "prefill" : "mixed";
    batch.index = static_cast<std::int32_t>(pending.schedule.index);
    batch.repeats = pending.decodes;
    std::int64_t longest = 1;
    for (const ScheduledRow& scheduled : rows) {
        longest = std::max(longest, scheduled.tokens);
    }
    pending.padding.assign(static_cast<std::size_t>(longest), kNoToken);
    for (const ScheduledRow& scheduled : rows) {
        const auto count = static_cast<std::size_t>(scheduled.tokens);
        StepSequence sequence{
            scheduled.sequence, {pending.padding.data(), count}, scheduled.samples || pending.decodes};
        const ActiveRequest* request = unended(scheduled.request);
        const bool known = request != nullptr && scheduled.kind != RowKind::Padding &&
                           scheduled.begin + scheduled.tokens <= static_cast<std::int64_t>(request->history().size());
        pending.known = pending.known && (known || scheduled.kind != RowKind::Prefill);
        if (known) {
            sequence.tokens = {request->history().data() + scheduled.begin, count};
        }
        if (request != nullptr && scheduled.kind == RowKind::Prefill) {
            const std::int64_t prompt = request->result().promptTokens;
            sequence.promptTokens = scheduled.begin < prompt ? prompt : 0;
        }
        batch.sequences.push_back(sequence);
        if (sequence.wantsLogits) {
            const bool counts = scheduled.samples && request != nullptr;
            pending.sampled.push_back(counts ? scheduled.request : -1);
            pending.sampling.push_back(counts ? request->sampling(known ? 0 : 1) : kernels::SampleParameters{});
        }
    }
    complete(pending);
    batch.sampling = pending.sampling;
    batch.carried = pending.carried;
    pending.launched = now();
}

/// Gives the tokens of a step to its requests.
void StepEngine::land(const StepOutput& out, const PendingStep& pending) {
    const base::TimeNs begin = std::max(pending.launched, landedAt_);
    landedAt_ = std::max(now(), begin);
    landed(pending, begin);
    const auto best = static_cast<std::size_t>(pending.batch.topLogprobs);
    for (std::size_t row = 0; row < pending.sampled.size(); ++row) {
        ActiveRequest* const request = unended(pending.sampled[row]);
        if (request == nullptr) {
            continue;
        }
        if (!out.logprobs.empty() && !std::isfinite(out.logprobs[row])) {
            broken(*request, pending);
            continue;
        }
        std::vector<std::pair<std::int32_t, float>> top;
        const std::size_t wanted = std::min(best, static_cast<std::size_t>(topLogprobsOf(*request)));
        top.reserve(wanted);
        for (std::size_t i = row * best; i < row * best + wanted; ++i) {
            top.emplace_back(out.topIds[i], out.topLogprobs[i]);
        }
        accept(*request, out.ids[row], out.logprobs.empty() ? 0 : out.logprobs[row], std::move(top));
    }
}

} // namespace vitrine::engine
