// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/step_engine.h"

#include <algorithm>
#include <utility>

namespace vitrine::engine {
namespace {

/// What a row without a token of its own reads; any id will do.
constexpr std::int32_t kNoToken = 0;

bool isPrefill(const PlannedRow& planned) {
    return planned.kind == RowKind::Prefill || planned.request < 0;
}

} // namespace

void StepEngine::drop() noexcept {
    model_.dropLaunched();
    flight_.reset();
}

void StepEngine::advance(std::unique_ptr<StepFlight>& next) {
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
    const std::unique_ptr<StepFlight> last = std::exchange(flight_, std::move(next));
    if (last != nullptr) {
        land(model_.finishLaunched(), *last);
    }
}

/// Launches the step behind the one under way or, when that has landed, runs it. False when nothing is left of it.
bool StepEngine::run(StepFlight& flight, bool& launched, StepOutput& out) {
    fill(flight);
    if (mayLaunch(flight) && launch(flight)) {
        launched = true;
        return true;
    }
    if (flight_ != nullptr) {
        landLast();
        fill(flight); // its ids are known now, and some of its requests may have ended
        if (flight.batch.sequences.empty()) {
            return false;
        }
    }
    flight.launched = now();
    out = model_.step(flight.batch, *cache_);
    ran(flight);
    return true;
}

void StepEngine::landLast() {
    const std::unique_ptr<StepFlight> last = std::move(flight_);
    land(model_.finishLaunched(), *last);
}

bool StepEngine::mayLaunch(const StepFlight& flight) const {
    const auto needsHistory = [](const kernels::SampleParameters& row) { return row.repetitionPenalty != 1; };
    return flight.known && std::none_of(flight.sampling.begin(), flight.sampling.end(), needsHistory);
}

/// The step's sequences and sampled rows, from its plan and from what is known by now.
void StepEngine::fill(StepFlight& flight) {
    // Who ended meanwhile has no sequence any more.
    std::erase_if(flight.plan.rows, [this](const PlannedRow& planned) { return !lives(planned); });
    const std::vector<PlannedRow>& rows = flight.plan.rows;
    const bool anyPrefill = std::any_of(rows.begin(), rows.end(), isPrefill);
    flight.decodes = !anyPrefill;
    flight.known = true;
    flight.sampled.clear();
    flight.sampling.clear();
    StepBatch& batch = flight.batch;
    batch = {};
    batch.name = !anyPrefill ? "decode" : std::all_of(rows.begin(), rows.end(), isPrefill) ? "prefill" : "mixed";
    batch.index = static_cast<std::int32_t>(flight.plan.index);
    batch.repeats = flight.decodes;
    std::int64_t longest = 1;
    for (const PlannedRow& planned : rows) {
        longest = std::max(longest, planned.tokens);
    }
    flight.padding.assign(static_cast<std::size_t>(longest), kNoToken);
    for (const PlannedRow& planned : rows) {
        const auto count = static_cast<std::size_t>(planned.tokens);
        StepSequence sequence{planned.sequence, {flight.padding.data(), count}, planned.samples || flight.decodes};
        const ActiveRequest* request = unended(planned.request);
        const bool known = request != nullptr && planned.kind != RowKind::Padding &&
                           planned.begin + planned.tokens <= static_cast<std::int64_t>(request->history().size());
        flight.known = flight.known && (known || planned.kind != RowKind::Prefill);
        if (known) {
            sequence.tokens = {request->history().data() + planned.begin, count};
        }
        if (request != nullptr && planned.kind == RowKind::Prefill) {
            const std::int64_t prompt = request->result().promptTokens;
            sequence.promptTokens = planned.begin < prompt ? prompt : 0;
        }
        batch.sequences.push_back(sequence);
        if (sequence.wantsLogits) {
            const bool counts = planned.samples && request != nullptr;
            flight.sampled.push_back(counts ? planned.request : -1);
            flight.sampling.push_back(counts ? request->sampling(known ? 0 : 1) : kernels::SampleParameters{});
        }
    }
    complete(flight);
    batch.sampling = flight.sampling;
    batch.carried = flight.carried;
    flight.launched = now();
}

/// Gives the tokens of a step to its requests.
void StepEngine::land(const StepOutput& out, const StepFlight& flight) {
    const base::TimeNs begin = std::max(flight.launched, landedAt_);
    landedAt_ = std::max(now(), begin);
    landed(flight, begin);
    const auto best = static_cast<std::size_t>(flight.batch.topLogprobs);
    for (std::size_t row = 0; row < flight.sampled.size(); ++row) {
        ActiveRequest* const request = unended(flight.sampled[row]);
        if (request == nullptr) {
            continue;
        }
        std::vector<std::pair<std::int32_t, float>> top;
        top.reserve(best);
        for (std::size_t i = row * best; i < (row + 1) * best; ++i) {
            top.emplace_back(out.topIds[i], out.topLogprobs[i]);
        }
        accept(*request, out.ids[row], out.logprobs.empty() ? 0 : out.logprobs[row], std::move(top));
    }
}

} // namespace vitrine::engine
