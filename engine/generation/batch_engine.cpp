// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/batch_engine.h"

#include "base/error.h"
#include "engine/generation/batch_flight.h"
#include "engine/generation/batch_pool.h"

namespace vitrine::engine {

BatchEngine::BatchEngine(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const BatchOptions& options)
    : model_(model), tokenizer_(std::move(tokenizer)), options_(options) {
    kernels::Context& context = model_.context();
    SchedulerOptions& scheduler = options_.scheduler;
    buckets_ = context.traits().arch.starts_with("sm_");
    scheduler.otherPages = buckets_ ? 1 : 0;
    if (model_.config().rope.type == RopeType::Dynamic) {
        scheduler.oneByOne = true;
        options_.cache.sharePrefixes = false; // keys depend on the length of the prompt that they were made for
    }
    options_.cache.kind = KvCacheKind::Paged;
    poolFor(options_.cache, scheduler, model_, options_.longestPrompt, options_.longestSequence);
    cache_ = std::make_unique<KvCache>(context, model_.config(), options_.cache);
    scheduler_ = std::make_unique<Scheduler>(scheduler, *cache_->book());
    if (scheduler.mode == BatchMode::Continuous && scheduler.preemption == Preemption::Swap) {
        swap_ = std::make_unique<KvSwap>(context, *cache_, scheduler.swapPages);
    }
    trace_ = std::make_unique<BatchTrace>(context.tracer(), scheduler.slots);
    if (buckets_) {
        fillSequence_ = cache_->addSequence();
        const KvAppend room{fillSequence_, 1};
        cache_->reserve({&room, 1});
        carryRows_ = bucketRows(scheduler.slots, scheduler.slots);
        carry_ = kernels::Tensor(context.memory().general(), base::MemoryCategory::Other, "batch.ids",
                                 kernels::DType::I32, kernels::Shape{2, carryRows_});
    }
    landed_ = now();
}

BatchEngine::~BatchEngine() {
    finish();
}

void BatchEngine::finish() noexcept {
    if (finished_) {
        return;
    }
    finished_ = true;
    model_.dropLaunched();
    flight_.reset();
    try {
        trace_->finish();
    } catch (const std::bad_alloc&) {
        // The trace lacks what its slots did last.
    }
}

base::TimeNs BatchEngine::now() const {
    return model_.context().clock().now();
}

/// Null for one that has ended, and whose result may be gone.
BatchEngine::Row* BatchEngine::unended(std::int32_t request) const {
    const auto found = rows_.find(request);
    return found == rows_.end() || found->second->done() ? nullptr : found->second.get();
}

const BatchResult& BatchEngine::result(std::int32_t request) const {
    return rows_.at(request)->out;
}

BatchResult BatchEngine::takeResult(std::int32_t request) {
    const auto found = rows_.find(request);
    if (found == rows_.end() || !found->second->done()) {
        throw base::Internal("the result of a request was taken before it ended");
    }
    BatchResult out = std::move(found->second->out);
    rows_.erase(found);
    scheduler_->forget(request);
    return out;
}

std::int32_t BatchEngine::add(GenerateRequest request, base::TimeNs arrival) {
    const std::int32_t number = scheduler_->add(request.prompt, request.maxNewTokens);
    auto row = std::make_unique<Row>();
    row->number = number;
    row->out.arrival = arrival;
    row->out.result.promptTokens = static_cast<std::int64_t>(request.prompt.size());
    trace_->request(number, base::RequestPhase::Arrived, arrival, -1, -1, row->out.result.promptTokens);
    if (scheduler_->state(number) == RequestState::Refused) {
        row->out.refusal = scheduler_->reason(number);
        trace_->request(number, base::RequestPhase::Refused, now(), -1, -1, 0, row->out.refusal);
    } else {
        row->history = request.prompt;
        if (tokenizer_ != nullptr) {
            row->answer.emplace(request.chatFormat.value_or(options_.chatFormat), tokenizer_, request.stopTexts);
        }
        row->request = std::move(request);
    }
    rows_.emplace(number, std::move(row));
    return number;
}

std::int32_t BatchEngine::refuse(const std::string& reason, base::TimeNs arrival) {
    const std::int32_t number = scheduler_->refuse(reason);
    auto row = std::make_unique<Row>();
    row->number = number;
    row->out.arrival = arrival;
    row->out.refusal = reason;
    trace_->request(number, base::RequestPhase::Arrived, arrival, -1, -1, 0);
    trace_->request(number, base::RequestPhase::Refused, now(), -1, -1, 0, reason);
    rows_.emplace(number, std::move(row));
    return number;
}

void BatchEngine::cancel(std::int32_t request) {
    const auto found = rows_.find(request);
    if (found == rows_.end() || found->second->done()) {
        return;
    }
    scheduler_->cancel(request);
    pagesMoved_ = true;
    endRow(*found->second, FinishReason::Cancelled, now(), {});
}

void BatchEngine::abandon(FinishReason reason) {
    finish();
    for (const auto& [number, row] : rows_) {
        if (!row->done()) {
            row->out.result.finish = reason;
        }
        if (row->answer) {
            row->out.result.channels = row->answer->channels();
        }
    }
}

// --- steps

bool BatchEngine::launch(const Flight& flight) {
    // Rotary tables that follow the lengths are made for each step: such steps are no graphs.
    return flight.decodes && !options_.scheduler.oneByOne ? model_.launch(flight.batch, *cache_, false)
                                                          : model_.launchOps(flight.batch, *cache_);
}

bool BatchEngine::step() {
    model_.context().throwIfStopped();
    BatchPlan plan = scheduler_->next();
    if (plan.empty() && flight_ == nullptr) {
        if (std::exchange(pagesMoved_, false)) {
            cache_->commit({}); // tells what those who ended gave back
        }
        return false;
    }
    pagesMoved_ = true;
    if (plan.empty()) {
        const std::unique_ptr<Flight> last = std::move(flight_);
        land(model_.finishLaunched(), *last);
        return true;
    }
    makeMoves(plan);
    tellPlan(plan);
    std::unique_ptr<Flight> next = prepareFlight(std::move(plan));
    fillStep(*next);
    if (mayLaunch(*next) && launch(*next)) {
        publish(*next);
        counts_.aheadSteps += flight_ != nullptr ? 1 : 0;
        const std::unique_ptr<Flight> last = std::exchange(flight_, std::move(next));
        if (last != nullptr) {
            land(model_.finishLaunched(), *last);
        }
        return true;
    }
    if (flight_ != nullptr) {
        const std::unique_ptr<Flight> last = std::move(flight_);
        land(model_.finishLaunched(), *last);
        fillStep(*next); // its ids are known now, and some of its requests may have ended
        if (next->batch.sequences.empty()) {
            return true;
        }
    }
    next->launched = now();
    const StepOutput out = model_.step(next->batch, *cache_);
    publish(*next);
    land(out, *next);
    return true;
}

void BatchEngine::makeMoves(const BatchPlan& plan) {
    for (const PageMove& move : plan.moves) {
        if (move.kind == PageMove::Kind::Copy) {
            cache_->copyPage(move.copy);
            continue;
        }
        for (std::size_t group = 0; group < move.pages.size(); ++group) {
            counts_.swapBytes += move.pages[group].size() * cache_->groups()[group].pageBytes;
        }
        if (move.kind == PageMove::Kind::SwapOut) {
            swap_->out(move.request, move.pages);
            ++counts_.swaps;
            counts_.mostSwappedPages = swap_->mostPages();
            counts_.swapHostBytes = swap_->hostBytes();
        } else {
            swap_->in(move.request, move.pages);
        }
    }
}

void BatchEngine::tellPlan(const BatchPlan& plan) {
    const base::TimeNs time = now();
    for (const SlotChange& change : plan.preempted) {
        Row& row = rowOf(change.request);
        ++row.out.preemptions;
        ++counts_.preemptions;
        trace_->preempted(change.slot, change.request);
        trace_->request(change.request, base::RequestPhase::Preempted, time, change.slot, plan.index,
                        static_cast<std::int64_t>(row.out.result.ids.size()), change.swapped ? "swap" : "recompute");
    }
    for (const SlotChange& change : plan.admitted) {
        Row& row = rowOf(change.request);
        if (!change.swapped && change.kept > 0) {
            counts_.sharedTokens += change.kept;
            counts_.sharingRequests += std::exchange(row.shares, true) ? 0 : 1;
        }
        // Pages are told by sequences: this says whose those are from now on.
        const std::string sequence = std::to_string(scheduler_->sequence(change.request));
        if (change.again) {
            trace_->request(change.request, base::RequestPhase::Resumed, time, change.slot, plan.index, change.kept,
                            sequence);
        } else {
            row.out.admitted = time;
            row.out.sharedTokens = change.kept;
            trace_->request(change.request, base::RequestPhase::Admitted, time, change.slot, plan.index, change.kept,
                            sequence);
        }
    }
}

} // namespace vitrine::engine
