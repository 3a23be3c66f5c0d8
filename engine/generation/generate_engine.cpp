// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/generate_engine.h"

#include <algorithm>
#include <new>

#include "base/error.h"
#include "engine/generation/broken_numbers.h"
#include "kernels/cuda/jit/kernel_library.h"

namespace vitrine::engine {
namespace {

/// Longest stretch of equal steps that scheduling jumps over: attention costs more as the cache grows.
constexpr std::int64_t kLongestJump = 1024;

} // namespace

GenerateEngine::GenerateEngine(Model& model, const std::shared_ptr<const Tokenizer>& tokenizer,
                               const GenerateOptions& options, std::vector<GenerateRequest> requests,
                               GenerateReport& report, const TokenCallback& onToken)
    : StepEngine(model, options.speculation), options_(options), report_(report), onToken_(onToken),
      chunk_(prefillChunk(model.context().traits(), options.prefillChunk)) {
    if (speculation_.on()) {
        requireSpeculation(model.config());
    }
    report_ = GenerateReport{};
    report_.results.resize(requests.size());
    for (GenerateRequest& request : requests) {
        if (request.prompt.empty()) {
            throw base::BadInput("prompt: has no tokens; give at least one");
        }
        const std::size_t number = rows_.size();
        rows_.push_back(std::make_unique<Row>(std::move(request), static_cast<std::int32_t>(number),
                                              report_.results[number], tokenizer, options.answerForm));
    }
}

/// Room for every request to its end, where the kind of cache wants to know. The last new token is never fed back, so
/// it needs no place.
KvCacheOptions GenerateEngine::cacheOptions() const {
    KvCacheOptions cache = options_.cache;
    cache.rollBackTokens = speculation_.on() ? speculation_.draftTokens : 0;
    const auto tokensOf = [this](const Row& row) {
        return options_.priorTokens + row.result().promptTokens + row.request().maxNewTokens - 1;
    };
    if (cache.kind == KvCacheKind::Static) {
        for (const auto& row : rows_) {
            cache.maxTokens = std::max(cache.maxTokens, tokensOf(*row));
        }
    }
    if (cache.kind == KvCacheKind::Paged) {
        cache.poolPages = 0;
        cache.poolSequences = static_cast<std::int64_t>(rows_.size());
        for (const KvGroup& group : kvGroups(model_.config(), cache)) {
            for (const auto& row : rows_) {
                cache.poolPages += group.ring() ? 0 : (tokensOf(*row) + group.pageTokens - 1) / group.pageTokens;
            }
        }
    }
    return cache;
}

void GenerateEngine::run() {
    const KvCacheOptions cache = cacheOptions();
    try {
        prepare(cache);
        cache_ = std::make_unique<KvCache>(model_.context(), model_.config(), cache);
        for (const auto& row : rows_) {
            row->sequence = cache_->addSequence();
            if (options_.priorTokens > 0) {
                cache_->fillRandom(row->sequence, options_.priorTokens, options_.priorSeed);
            }
        }
        prefill();
        decode();
    } catch (const base::Error& error) {
        abandon(finishReasonOf(error));
        throw;
    } catch (const std::bad_alloc&) {
        abandon(FinishReason::OutOfMemory);
        throw;
    } catch (...) {
        abandon(FinishReason::Failed);
        throw;
    }
    cache_.reset();
}

void GenerateEngine::abandon(FinishReason reason) {
    drop();
    if (speculation_.on()) {
        speculation_.drafter->forgetAll();
    }
    for (const auto& row : rows_) {
        row->abandon(reason);
    }
    cache_.reset();
}

ActiveRequest* GenerateEngine::unended(std::int32_t request) const {
    Row* const row = request < 0 ? nullptr : rows_[static_cast<std::size_t>(request)].get();
    return row == nullptr || row->done() ? nullptr : row;
}

std::vector<GenerateEngine::Row*> GenerateEngine::liveRows() const {
    std::vector<Row*> rows;
    for (const auto& row : rows_) {
        if (!row->done()) {
            rows.push_back(row.get());
        }
    }
    return rows;
}

// --- schedules

/// As many tokens as a step takes of the first rows that have not had all of theirs.
StepSchedule GenerateEngine::nextPrefill() {
    StepSchedule schedule;
    std::int64_t room = chunk_;
    for (const auto& row : rows_) {
        const std::int64_t length = row->result().promptTokens;
        const std::int64_t count = std::min(room, length - row->prefilled);
        if (count == 0) {
            continue;
        }
        const bool last = row->prefilled + count == length;
        schedule.rows.push_back({row->number(), 0, row->sequence, RowKind::Prefill, row->prefilled, count, last});
        row->prefilled += count;
        room -= count;
    }
    return schedule;
}

/// A token for every row that has not ended. Empty where there is none, and where a row may end with the step under
/// way: the next one would have other rows.
StepSchedule GenerateEngine::nextDecode() const {
    StepSchedule schedule;
    schedule.index = decodeIndex_;
    const PendingStep* const last = underWay();
    if (last != nullptr) {
        for (const std::int32_t request : last->sampled) {
            const ActiveRequest* const row = unended(request);
            if (row == nullptr || row->remaining() <= 1) {
                return schedule;
            }
        }
    }
    for (const Row* row : liveRows()) {
        const auto known = static_cast<std::int64_t>(row->history().size());
        const auto drafts = static_cast<std::int64_t>(row->draft().size());
        schedule.rows.push_back({row->number(), 0, row->sequence, RowKind::Decode, last == nullptr ? known - 1 : known,
                                 1 + drafts, true, drafts});
    }
    return schedule;
}

// --- steps

void GenerateEngine::advanceTo(StepSchedule schedule) {
    auto pending = std::make_unique<PendingStep>();
    pending->schedule = std::move(schedule);
    advance(pending);
}

void GenerateEngine::prefill() {
    const double begin = seconds();
    const kernels::KernelLibrary* const library = model_.context().kernelLibrary();
    const double waited = library == nullptr ? 0 : library->waitedSeconds();
    const kernels::TraceScope phase(model_.context().tracer(), base::ScopeKind::Phase, "prefill");
    std::int64_t total = 0;
    std::int64_t done = 0;
    for (const auto& row : rows_) {
        total += row->result().promptTokens;
    }
    std::int64_t index = 0;
    for (StepSchedule schedule = nextPrefill(); !schedule.empty(); schedule = nextPrefill()) {
        schedule.index = index++;
        done += schedule.tokens();
        advanceTo(std::move(schedule));
        report_.prefillSeconds = seconds() - begin;
        report_.prefilledTokens = done;
        if (library != nullptr) {
            report_.prefillCompileSeconds = library->waitedSeconds() - waited;
        }
        if (options_.progress != nullptr && total > chunk_) {
            options_.progress->progress("Reading the prompt", static_cast<std::uint64_t>(done),
                                        static_cast<std::uint64_t>(total));
        }
    }
}

void GenerateEngine::decode() {
    decodeBegin_ = seconds();
    const kernels::TraceScope phase(model_.context().tracer(), base::ScopeKind::Phase, "decode");
    for (;;) {
        draftAll();
        StepSchedule schedule = nextDecode();
        if (!schedule.empty()) {
            ++decodeIndex_;
            advanceTo(std::move(schedule));
        } else if (underWay() != nullptr) {
            landLast();
        } else {
            break;
        }
        report_.speculation = speculated_;
        if (options_.jumpEqualSteps && underWay() == nullptr && !speculation_.on()) {
            jump(report_.stepSeconds);
        }
        report_.decodeSeconds = seconds() - decodeBegin_;
    }
}

void GenerateEngine::draftAll() {
    if (!speculation_.on()) {
        return;
    }
    std::vector<ActiveRequest*> requests;
    for (Row* const row : liveRows()) {
        requests.push_back(row);
    }
    if (underWay() != nullptr && !allRest(requests)) {
        landLast();
        std::erase_if(requests, [](const ActiveRequest* request) { return request->done(); });
    }
    draft(requests);
}

void GenerateEngine::complete(PendingStep& pending) {
    StepBatch& batch = pending.batch;
    batch.repeats = true;
    batch.topLogprobs = options_.topLogprobs;
    const bool counts = pending.decodes && options_.expertUse != nullptr && batch.index < options_.countedSteps;
    batch.expertUse = counts ? options_.expertUse : nullptr;
}

/// Only steps of single tokens: a draft follows from the tokens of the step before. What is counted is run. What the
/// step under way gives is kept if this one fails.
bool GenerateEngine::launch(const PendingStep& pending) {
    if (!pending.decodes || pending.batch.expertUse != nullptr || pending.drafts) {
        return false;
    }
    try {
        return model_.launch(pending.batch, *cache_, underWay() != nullptr ? Launch::GraphOnPendingIds : Launch::Graph);
    } catch (...) {
        if (underWay() != nullptr) {
            landLast();
            report_.decodeSeconds = seconds() - decodeBegin_;
        }
        throw;
    }
}

void GenerateEngine::entered(const PendingStep&) {
    report_.kvBytes = std::max(report_.kvBytes, cache_->usedBytes());
    const std::uint64_t pages = cache_->bytes();
    if (pages > report_.kvPageBytes) {
        report_.kvPageBytes = pages;
        report_.kvGroupBytes.clear();
        for (std::size_t group = 0; group < cache_->groups().size(); ++group) {
            report_.kvGroupBytes.emplace_back(cache_->groups()[group].name, cache_->bytes(static_cast<int>(group)));
        }
    }
}

void GenerateEngine::landed(const PendingStep& pending, base::TimeNs begin, std::int64_t) {
    const double stepSeconds = static_cast<double>(landedAt_) * 1e-9 - static_cast<double>(begin) * 1e-9;
    if (!pending.decodes) {
        report_.stepSeconds = std::max(report_.stepSeconds, stepSeconds);
        return;
    }
    // A cache that grew in this step does not grow in those like it.
    const double once = static_cast<double>(model_.context().onceTime() - pending.once) * 1e-9;
    report_.stepSeconds = std::max(0.0, stepSeconds - once);
    ++report_.decodeSteps;
}

void GenerateEngine::accept(ActiveRequest& request, std::int32_t id, float logprob,
                            std::vector<std::pair<std::int32_t, float>> top) {
    TakenToken taken = request.take(model_.context().tracer(), id, logprob, std::move(top));
    taken.token.time = now();
    report_.decodedTokens += taken.token.index > 0 ? 1 : 0;
    if (onToken_) {
        onToken_(taken.token);
    }
    if (taken.finish != FinishReason::None) {
        request.end(taken.finish);
        Row& row = *rows_[static_cast<std::size_t>(request.number())];
        cache_->removeSequence(row.sequence);
        row.sequence = -1;
        if (speculation_.on()) {
            speculation_.drafter->forget(row.number());
        }
    }
}

void GenerateEngine::rollBack(ActiveRequest& request, std::int64_t rejected) {
    const int sequence = rows_[static_cast<std::size_t>(request.number())]->sequence;
    cache_->trim(sequence, cache_->length(sequence) - rejected);
}

/// All requests have the same weights: the run ends.
void GenerateEngine::broken(ActiveRequest& request, const PendingStep& pending) {
    drop();
    throw base::BadInput(brokenNumbers(model_, request.history(), pending.batch.name, pending.batch.index));
}

/// Goes over steps that would repeat the last one: nothing is computed, their time passes.
void GenerateEngine::jump(double stepSeconds) {
    std::vector<int> sequences;
    std::int64_t count = kLongestJump;
    const std::vector<Row*> rows = liveRows();
    for (const Row* row : rows) {
        sequences.push_back(row->sequence);
        // The last token is left for a step of its own, so that the run ends as it would.
        count = std::min(count, row->remaining() - 1);
    }
    if (sequences.empty()) {
        return;
    }
    count = std::min(count, cache_->roomBeforeGrowth(sequences));
    if (count <= 0) {
        return;
    }
    std::vector<KvAppend> appends;
    for (Row* row : rows) {
        appends.push_back({row->sequence, count});
        row->skip(count);
    }
    model_.context().passTime(stepSeconds * static_cast<double>(count));
    model_.context().joinStreams();
    cache_->commit(appends);
    PendingStep none;
    entered(none);
    report_.decodeSteps += count;
    report_.decodedTokens += count * static_cast<std::int64_t>(rows.size());
}

} // namespace vitrine::engine
