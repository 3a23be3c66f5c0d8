// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/batch_engine.h"

#include <algorithm>

#include "base/error.h"
#include "engine/generation/batch_pool.h"
#include "engine/generation/request_rows.h"

namespace vitrine::engine {
namespace {

/// What a row without a token of its own reads; any id will do.
constexpr std::int32_t kNoToken = 0;

} // namespace

/// One request on its way.
struct BatchEngine::Row {
    BatchResult out;
    GenerateRequest request;
    std::int32_t number = 0;
    std::vector<std::int32_t> history; ///< prompt and new tokens
    std::int64_t computed = 0;         ///< tokens that were in the cache at some time
    std::optional<AnswerText> answer;

    bool done() const { return out.result.finish != FinishReason::None || !out.refusal.empty(); }
};

/// A step from its plan to its tokens.
struct BatchEngine::Flight {
    BatchPlan plan;
    BatchMoment moment;
    bool decodes = false; ///< single tokens only
    bool known = true;    ///< but for ids that the device carries over
    std::int32_t fill = 0;
    base::TimeNs launched = 0;
    StepBatch batch;
    std::vector<kernels::SampleParameters> sampling;
    std::vector<CarriedIds> carried;
    std::vector<std::int32_t> padding;
    std::vector<std::int32_t> sampled; ///< request of each row of logits, -1: nobody's
    const std::int32_t* ids = nullptr; ///< on the device
};

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
            row->answer.emplace(options_.chatFormat, tokenizer_, request.stopTexts);
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

bool BatchEngine::step() {
    model_.context().throwIfStopped();
    BatchPlan plan = scheduler_->next();
    if (plan.empty() && flight_ == nullptr) {
        return false;
    }
    if (plan.empty()) {
        const std::unique_ptr<Flight> last = std::move(flight_);
        land(model_.finishLaunched(), *last);
        return true;
    }
    makeMoves(plan);
    tellPlan(plan);
    std::unique_ptr<Flight> next = prepareFlight(std::move(plan));
    fillStep(*next);
    if (mayLaunch(*next) &&
        (next->decodes ? model_.launch(next->batch, *cache_, false) : model_.launchOps(next->batch, *cache_))) {
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
    for (std::int32_t rows = 1; rows <= slots; ++rows) {
        if (bucketRows(rows, slots) == rows) {
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
    if (model_.context().cuda() == nullptr) {
        return;
    }
    std::vector<std::int32_t> tokens;
    std::vector<StepBatch> steps = likelySteps(tokens);
    const std::vector<kernels::SampleParameters> greedy(static_cast<std::size_t>(options_.scheduler.slots) + 1);
    for (StepBatch& step : steps) {
        step.sampling = std::span(greedy).first(step.sequences.size());
    }
    KvCacheOptions cache = options_.cache;
    if (cache.kind == KvCacheKind::Paged && cache.pageTokens == 0) {
        cache.pageTokens = kPoolPageTokens;
    }
    cache.kind = KvCacheKind::Dynamic; // kernels do not know the difference, and nothing has to fit
    model_.prepare(steps, cache, options_.progress);
}

void BatchEngine::makeMoves(const BatchPlan& plan) {
    for (const PageMove& move : plan.moves) {
        if (move.kind == PageMove::Kind::Copy) {
            cache_->copyPage(move.copy);
            continue;
        }
        const std::uint64_t bytes = cache_->pagesBytes(move.pages);
        counts_.swapBytes += bytes;
        if (move.kind == PageMove::Kind::SwapOut) {
            kernels::Buffer host(model_.context().memory().host(), bytes,
                                 {base::MemoryCategory::KvCache, "kv_cache.swapped", kernels::DType::U8, {}});
            cache_->copyOut(move.pages, host.data());
            swapped_[move.request] = std::move(host);
            ++counts_.swaps;
        } else {
            cache_->copyIn(move.pages, swapped_.at(move.request).data());
            if (kernels::CudaContext* gpu = model_.context().cuda()) {
                gpu->synchronize(); // the pinned memory is read until then
            }
            swapped_.erase(move.request);
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
        if (change.again) {
            trace_->request(change.request, base::RequestPhase::Resumed, time, change.slot, plan.index, change.kept);
        } else {
            row.out.admitted = time;
            row.out.sharedTokens = change.kept;
            trace_->request(change.request, base::RequestPhase::Admitted, time, change.slot, plan.index, change.kept);
        }
    }
}

std::unique_ptr<BatchEngine::Flight> BatchEngine::prepareFlight(BatchPlan plan) {
    auto flight = std::make_unique<Flight>();
    flight->plan = std::move(plan);
    flight->moment = {scheduler_->queued(), scheduler_->running(), scheduler_->preempted(), cache_->book()->counts()};
    return flight;
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
                           planned.begin + planned.tokens <= static_cast<std::int64_t>(row->history.size());
        flight.known = flight.known && (known || planned.kind != RowKind::Prefill);
        if (known) {
            sequence.tokens = {row->history.data() + planned.begin, count};
        }
        if (row != nullptr && planned.kind == RowKind::Prefill) {
            sequence.promptTokens = planned.begin < row->out.result.promptTokens ? row->out.result.promptTokens : 0;
        }
        batch.sequences.push_back(sequence);
        if (sequence.wantsLogits) {
            const bool counts = planned.samples && row != nullptr;
            flight.sampled.push_back(counts ? planned.request : -1);
            flight.sampling.push_back(counts ? sampleParameters(row->request, row->history, row->number, known ? 0 : 1)
                                             : kernels::SampleParameters{});
        }
    }
    const auto count = static_cast<std::int32_t>(rows.size());
    flight.fill = buckets_ && flight.decodes ? bucketRows(count, options_.scheduler.slots) - count : 0;
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
    if (model_.context().cuda() != nullptr) {
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

void BatchEngine::publish(const Flight& flight) {
    carryHalf_ = 1 - carryHalf_;
    if (cache_->book()->sharesPrefixes()) {
        for (const PlannedRow& planned : flight.plan.rows) {
            if (const Row* row = unended(planned.request); row != nullptr) {
                cache_->book()->publish(planned.sequence, row->history);
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
    GeneratedToken token;
    token.request = row.number;
    token.index = static_cast<std::int32_t>(result.ids.size());
    token.id = id;
    token.logprob = logprob;
    token.time = time;
    model_.context().tracer().token(row.number, static_cast<std::int32_t>(row.history.size()), id, logprob);
    row.history.push_back(id);
    result.ids.push_back(id);
    result.logprobs.push_back(logprob);
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
    swapped_.erase(row.number);
    const bool cancelled = finish == FinishReason::Cancelled;
    trace_->request(row.number, cancelled ? base::RequestPhase::Cancelled : base::RequestPhase::Finished, time, -1,
                    counts_.steps > 0 ? counts_.steps - 1 : -1, static_cast<std::int64_t>(row.out.result.ids.size()),
                    reason);
    row.history = {};
    if (onEnd_) {
        onEnd_(row.number);
    }
}

} // namespace vitrine::engine
