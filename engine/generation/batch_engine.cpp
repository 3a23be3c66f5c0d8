// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/batch_engine.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/generation/batch_pool.h"
#include "engine/generation/batch_row.h"

namespace vitrine::engine {
namespace {

std::uint64_t bytesOf(const PageMove& move, const KvCache& cache) {
    std::uint64_t bytes = 0;
    for (std::size_t group = 0; group < move.pages.size(); ++group) {
        bytes += move.pages[group].size() * cache.groups()[group].pageBytes;
    }
    return bytes;
}

/// The most tokens of a step whose logits scored prompts want. The memory of steps has room for a row of logits of each
/// slot; where memory is short, there are no more.
std::int64_t scoreBudget(std::int64_t vocab, std::int64_t most) {
    constexpr std::int64_t kBytes = std::int64_t{256} << 20;
    const std::int64_t rows = std::max<std::int64_t>(kBytes / static_cast<std::int64_t>(sizeof(float)) / vocab, 1);
    return most > 0 ? std::min(rows, most) : rows;
}

void checkSpeculation(const BatchOptions& options, const ModelConfig& config) {
    if (options.scheduler.mode == BatchMode::Static) {
        throw base::Unsupported("speculate: a static batch gives every request one token a step; use mode continuous");
    }
    requireSpeculation(config);
}

} // namespace

BatchEngine::BatchEngine(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const BatchOptions& options)
    : StepEngine(model, options.speculation), tokenizer_(std::move(tokenizer)), options_(options) {
    kernels::Context& context = model_.context();
    SchedulerOptions& scheduler = options_.scheduler;
    if (speculation_.on()) {
        checkSpeculation(options_, model_.config());
        options_.cache.rollBackTokens = speculation_.draftTokens;
    }
    buckets_ = context.traits().features.fewStepSizes;
    scheduler.otherPages = buckets_ ? 1 : 0;
    if (model_.config().rope.followsLength()) {
        scheduler.oneByOne = true;
        options_.cache.sharePrefixes = false; // keys depend on the length of the prompt that they were made for
    }
    options_.cache.kind = KvCacheKind::Paged;
    const bool tight =
        fitBatch(options_.cache, scheduler, model_,
                 {options_.longestPrompt, options_.longestSequence, options_.mostForbidden, options_.experts});
    cache_ = std::make_unique<KvCache>(context, model_.config(), options_.cache);
    if (tight) {
        mapWholePool();
    }
    scheduler.scoreBudget = scoreBudget(model_.config().vocab, tight ? scheduler.slots : 0);
    scheduler_ = std::make_unique<Scheduler>(scheduler, *cache_->book());
    if (swaps(scheduler)) {
        swap_ = std::make_unique<KvSwap>(context, *cache_, scheduler.swapPages,
                                         tight ? KvSwap::halfFor(cache_->groups(), cache_->options()) : KvSwap::kHalf);
    }
    trace_ = std::make_unique<BatchTrace>(context.tracer(), scheduler.slots);
    if (buckets_) {
        fillSequence_ = cache_->addSequence();
        const KvAppend room{fillSequence_, 1};
        cache_->reserve({&room, 1});
        carryRows_ = carriedRows(scheduler);
        const kernels::Shape shape{2, carryRows_};
        carryArena_ = context.memory().reserveArena(kernels::bytesOf(kernels::DType::I32, shape.count()), "batch.ids");
        carry_ = kernels::Tensor(*carryArena_, base::MemoryCategory::Other, "batch.ids", kernels::DType::I32, shape);
    }
    landedAt_ = now();
}

BatchEngine::~BatchEngine() {
    finish();
}

void BatchEngine::finish() noexcept {
    if (finished_) {
        return;
    }
    finished_ = true;
    drop();
    try {
        if (speculation_.on()) {
            speculation_.drafter->forgetAll();
        }
        trace_->finish();
    } catch (const std::bad_alloc&) {
        // The trace lacks what its slots did last.
    }
}

/// Null for one that has ended, and whose result may be gone.
BatchEngine::Row* BatchEngine::unendedRow(std::int32_t request) const {
    const auto found = rows_.find(request);
    return found == rows_.end() || found->second->done() ? nullptr : found->second.get();
}

ActiveRequest* BatchEngine::unended(std::int32_t request) const {
    Row* const row = unendedRow(request);
    return row == nullptr ? nullptr : &row->request;
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
    const std::int32_t number =
        scheduler_->add(request.prompt, request.maxNewTokens, request.scoresPrompt, request.readsWholePrompt);
    const auto promptTokens = static_cast<std::int64_t>(request.prompt.size());
    trace_->request(number, base::RequestChange::Arrived, arrival, -1, -1, promptTokens);
    if (scheduler_->state(number) == RequestState::Refused) {
        addRefused(number, scheduler_->reason(number), arrival).result.promptTokens = promptTokens;
        return number;
    }
    auto row = std::make_unique<Row>(std::move(request), number, tokenizer_, options_.answerForm);
    row->out.arrival = arrival;
    rows_.emplace(number, std::move(row));
    return number;
}

BatchResult& BatchEngine::addRefused(std::int32_t number, const std::string& reason, base::TimeNs arrival) {
    auto row = std::make_unique<Row>(GenerateRequest{}, number, nullptr, options_.answerForm);
    row->out.arrival = arrival;
    row->out.refusal = reason;
    trace_->request(number, base::RequestChange::Refused, now(), -1, -1, 0, reason);
    return rows_.emplace(number, std::move(row)).first->second->out;
}

std::int32_t BatchEngine::refuse(const std::string& reason, base::TimeNs arrival) {
    const std::int32_t number = scheduler_->refuse(reason);
    trace_->request(number, base::RequestChange::Arrived, arrival, -1, -1, 0);
    addRefused(number, reason, arrival);
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
        if (row->out.refusal.empty()) {
            row->request.abandon(reason);
        }
    }
}

// --- steps

bool BatchEngine::launch(const PendingStep& pending) {
    // The next drafts follow from what it keeps, and the ids of scored rows have no place on the device.
    if (pending.drafts || !pending.scored.empty()) {
        return false;
    }
    // Rotary tables that follow the lengths are made for each step: such steps are no graphs.
    const bool graph = pending.decodes && !options_.scheduler.oneByOne;
    const bool launched = model_.launch(pending.batch, *cache_, graph ? Launch::Graph : Launch::Ops);
    counts_.aheadSteps += launched && underWay() != nullptr ? 1 : 0;
    return launched;
}

void BatchEngine::ran(const PendingStep& pending) {
    if (swap_ != nullptr && buckets_) {
        // Meta runs it at once. A device would have it launched: the host asks for the next step's moves while it runs.
        swap_->askedAt(mayLaunch(pending) ? pending.launched : now());
    }
}

void BatchEngine::entered(const PendingStep& pending) {
    raiseTokenLimit();
    publish(pending);
}

bool BatchEngine::runStep() {
    offerDrafts();
    mapPagesOfNextStep();
    StepSchedule schedule = scheduler_->next();
    if (schedule.empty() && underWay() == nullptr) {
        if (std::exchange(pagesMoved_, false)) {
            cache_->commit({}); // reports the pages that ended requests gave back
        }
        idle_ = true;
        liftPoolLimits();
        return false;
    }
    pagesMoved_ = true;
    if (schedule.empty()) {
        landLast();
        endBroken();
        return true;
    }
    if (std::exchange(idle_, false) && swap_ != nullptr) {
        swap_->askedAt(now());
    }
    cache_->backPages(); // of those that the schedule took; what is under way goes on meanwhile
    makeMoves(schedule);
    reportSchedule(schedule);
    std::unique_ptr<PendingStep> next = preparePendingStep(std::move(schedule));
    try {
        advance(next);
    } catch (const base::OutOfMemory& error) {
        if (!options_.survivesOutOfMemory || next == nullptr) {
            throw;
        }
        retrySmaller(*next, error);
    }
    endBroken();
    return true;
}

void BatchEngine::makeMoves(StepSchedule& schedule) {
    for (const PageMove& move : schedule.moves) {
        if (move.kind == PageMove::Kind::Copy) {
            cache_->copyPage(move.copy);
        } else if (move.kind == PageMove::Kind::SwapOut) {
            moveOut(move, schedule);
        } else {
            counts_.swapBytes += bytesOf(move, *cache_);
            swap_->in(move.request, move.pages);
        }
    }
}

/// Where the host has no memory for them, the request reads its tokens again when its turn comes.
void BatchEngine::moveOut(const PageMove& move, StepSchedule& schedule) {
    try {
        swap_->out(move.request, move.pages);
        ++counts_.swaps;
        counts_.swapBytes += bytesOf(move, *cache_);
    } catch (const base::OutOfMemory& error) {
        lastOutOfMemory_ = error.message();
        ++counts_.lostSwaps;
        scheduler_->loseSwapped(move.request);
        const auto change = std::find_if(schedule.preempted.begin(), schedule.preempted.end(),
                                         [&](const SlotChange& item) { return item.request == move.request; });
        change->swapped = false;
    }
    counts_.mostSwappedPages = swap_->mostPages();
    counts_.swapHostBytes = swap_->hostBytes();
}

void BatchEngine::reportSchedule(const StepSchedule& schedule) {
    const base::TimeNs time = now();
    for (const SlotChange& change : schedule.preempted) {
        Row& row = rowOf(change.request);
        ++row.out.preemptions;
        forgetDrafts(change.request);
        ++counts_.preemptions;
        trace_->preempted(change.slot, change.request);
        trace_->request(change.request, base::RequestChange::Preempted, time, change.slot, schedule.index,
                        static_cast<std::int64_t>(row.out.result.ids.size()), change.swapped ? "swap" : "recompute");
    }
    for (const SlotChange& change : schedule.admitted) {
        Row& row = rowOf(change.request);
        if (!change.swapped && change.kept > 0) {
            counts_.sharedTokens += change.kept;
            counts_.sharingRequests += std::exchange(row.shares, true) ? 0 : 1;
        }
        // Events of pages name sequences: this one says whose they are from now on.
        const auto sequence = static_cast<std::int32_t>(scheduler_->sequence(change.request));
        if (change.again) {
            trace_->request(change.request, base::RequestChange::Resumed, time, change.slot, schedule.index,
                            change.kept, {}, sequence);
        } else {
            row.out.admitted = time;
            row.out.sharedTokens = change.kept;
            trace_->request(change.request, base::RequestChange::Admitted, time, change.slot, schedule.index,
                            change.kept, {}, sequence);
        }
    }
}

} // namespace vitrine::engine
