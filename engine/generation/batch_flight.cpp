// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// A step of a batch from its plan to its inputs, and the steps that are compiled before the first.

#include "engine/generation/batch_flight.h"

#include <algorithm>

#include "engine/generation/batch_pool.h"

namespace vitrine::engine {
namespace {

/// What a row without a token of its own reads; any id will do.
constexpr std::int32_t kNoToken = 0;

} // namespace

/// Steps that are likely to come: single tokens in every bucket, and prompts of several lengths beside a full batch.
std::vector<StepBatch> BatchEngine::likelySteps(std::vector<std::int32_t>& tokens) const {
    const std::int32_t slots = options_.scheduler.slots;
    const std::int64_t budget = options_.scheduler.tokenBudget;
    const std::int64_t prompts = options_.longestPrompt > 0 ? std::min(budget, options_.longestPrompt * slots)
                                                            : std::min<std::int64_t>(budget, 8192);
    tokens.assign(static_cast<std::size_t>(std::max(prompts, std::int64_t{1})), kNoToken);
    std::vector<StepBatch> steps;
    const auto add = [&](std::int32_t singles, std::int64_t prompt) {
        StepBatch& step = steps.emplace_back();
        step.name = prompt > 0 ? "mixed" : "decode";
        for (std::int32_t i = 0; i < singles; ++i) {
            step.sequences.push_back({i, {tokens.data(), 1}});
        }
        if (prompt > 0) {
            step.sequences.push_back({slots, {tokens.data(), static_cast<std::size_t>(prompt)}});
        }
    };
    for (std::int32_t rows = 1; rows <= mostDecodes(); ++rows) {
        if (bucketRows(rows, mostDecodes()) == rows) {
            add(rows, 0);
        }
    }
    for (std::int64_t prompt = 16; prompt <= prompts; prompt *= 2) {
        add(0, prompt);
        add(std::max(slots - 1, 1), prompt);
    }
    return steps;
}

void BatchEngine::prepare() {
    if (!model_.context().can().compilesKernels) {
        return;
    }
    std::vector<std::int32_t> tokens;
    std::vector<StepBatch> steps = likelySteps(tokens);
    const std::vector<kernels::SampleParameters> greedy(static_cast<std::size_t>(options_.scheduler.slots) + 1);
    for (StepBatch& step : steps) {
        step.sampling = std::span(greedy).first(step.sequences.size());
    }
    KvCacheOptions cache = options_.cache;
    cache.kind = KvCacheKind::Dynamic; // kernels do not know the difference, and nothing has to fit
    model_.prepare(steps, cache, options_.progress);
}

std::unique_ptr<BatchEngine::Flight> BatchEngine::prepareFlight(BatchPlan plan) {
    auto flight = std::make_unique<Flight>();
    flight->plan = std::move(plan);
    flight->moment = {scheduler_->queued(), scheduler_->running(), scheduler_->preempted(), cache_->book()->counts()};
    return flight;
}

std::int32_t BatchEngine::mostDecodes() const {
    const SchedulerOptions& scheduler = options_.scheduler;
    return static_cast<std::int32_t>(std::min<std::int64_t>(scheduler.slots, scheduler.tokenBudget));
}

/// The step's sequences, sampled rows and carried ids, from its plan and from what is known by now.
void BatchEngine::fillStep(Flight& flight) {
    // Who ended meanwhile has no sequence any more.
    std::erase_if(flight.plan.rows,
                  [this](const PlannedRow& planned) { return !cache_->book()->live(planned.sequence); });
    const auto isPrefill = [](const PlannedRow& planned) {
        return planned.kind == RowKind::Prefill || planned.request < 0;
    };
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
        const Row* row = unended(planned.request);
        const bool known = row != nullptr && planned.kind != RowKind::Padding &&
                           planned.begin + planned.tokens <= static_cast<std::int64_t>(row->request.history().size());
        flight.known = flight.known && (known || planned.kind != RowKind::Prefill);
        if (known) {
            sequence.tokens = {row->request.history().data() + planned.begin, count};
        }
        if (row != nullptr && planned.kind == RowKind::Prefill) {
            sequence.promptTokens = planned.begin < row->out.result.promptTokens ? row->out.result.promptTokens : 0;
        }
        batch.sequences.push_back(sequence);
        if (sequence.wantsLogits) {
            const bool counts = planned.samples && row != nullptr;
            flight.sampled.push_back(counts ? planned.request : -1);
            flight.sampling.push_back(counts ? row->request.sampling(known ? 0 : 1) : kernels::SampleParameters{});
        }
    }
    const auto count = static_cast<std::int32_t>(rows.size());
    flight.fill = buckets_ && flight.decodes ? bucketRows(count, mostDecodes()) - count : 0;
    for (std::int32_t i = 0; i < flight.fill; ++i) {
        StepSequence fill{fillSequence_, {flight.padding.data(), 1}, true};
        fill.keep = false;
        batch.sequences.push_back(fill);
        flight.sampled.push_back(-1);
        flight.sampling.emplace_back();
    }
    batch.sampling = flight.sampling;
    flight.carried = carriedBy(flight);
    batch.carried = flight.carried;
    flight.launched = now();
    if (model_.context().can().runsAhead) {
        batch.idsOut = carry_.view().as<std::int32_t>() + carryHalf_ * carryRows_;
        flight.ids = batch.idsOut;
    }
}

/// Where the device keeps the ids that the step under way samples for rows of this one.
std::vector<CarriedIds> BatchEngine::carriedBy(Flight& flight) const {
    std::vector<CarriedIds> out;
    if (flight_ == nullptr) {
        return out;
    }
    for (std::size_t i = 0; i < flight.plan.rows.size(); ++i) {
        const PlannedRow& planned = flight.plan.rows[i];
        const auto from = std::find(flight_->sampled.begin(), flight_->sampled.end(), planned.request);
        if (planned.request < 0 || planned.kind != RowKind::Decode || from == flight_->sampled.end()) {
            continue;
        }
        const std::int32_t* const ids = flight_->ids + (from - flight_->sampled.begin());
        const auto token = static_cast<std::int64_t>(i);
        if (!out.empty() && out.back().token + out.back().count == token && out.back().ids + out.back().count == ids) {
            ++out.back().count;
        } else {
            out.push_back({token, 1, ids});
        }
    }
    return out;
}

/// Whether the step may be launched without knowing what the one before it sampled.
bool BatchEngine::mayLaunch(const Flight& flight) const {
    const auto needsHistory = [](const kernels::SampleParameters& row) { return row.repetitionPenalty != 1; };
    return flight.known && std::none_of(flight.sampling.begin(), flight.sampling.end(), needsHistory);
}

} // namespace vitrine::engine
