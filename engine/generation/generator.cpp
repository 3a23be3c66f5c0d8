// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/generator.h"

#include <algorithm>
#include <exception>
#include <new>

#include "base/error.h"
#include "engine/generation/generator_row.h"

namespace vitrine::engine {
namespace {

/// Longest stretch of equal steps that planning jumps over: attention costs more as the cache grows.
constexpr std::int64_t kLongestJump = 1024;

} // namespace

Generator::Generator(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const GenerateOptions& options)
    : model_(model), tokenizer_(std::move(tokenizer)), options_(options) {}

Generator::~Generator() = default;

double Generator::now() const {
    return static_cast<double>(model_.context().clock().now()) * 1e-9;
}

void Generator::addRow(GenerateRequest request) {
    if (request.prompt.empty()) {
        throw base::BadInput("prompt: has no tokens; give at least one");
    }
    const auto number = static_cast<std::int32_t>(rows_.size());
    auto row = std::make_unique<Row>(std::move(request), number, report_->results[rows_.size()], tokenizer_,
                                     options_.chatFormat);
    row->sequence = number; // until the cache gives one
    rows_.push_back(std::move(row));
}

void Generator::abandon(FinishReason reason) {
    model_.dropLaunched();
    for (const auto& row : rows_) {
        row->abandon(reason);
    }
    cache_.reset();
}

void Generator::run(std::vector<GenerateRequest> requests, GenerateReport& report, const TokenCallback& onToken) {
    report = GenerateReport{};
    report.results.resize(requests.size());
    report_ = &report;
    onToken_ = &onToken;
    rows_.clear();
    cache_.reset();
    KvCacheOptions cacheOptions = options_.cache;
    for (GenerateRequest& request : requests) {
        addRow(std::move(request));
        if (cacheOptions.kind == KvCacheKind::Static) {
            // The last new token is never fed back, so it needs no place.
            const Row& row = *rows_.back();
            cacheOptions.maxTokens = std::max(cacheOptions.maxTokens, options_.priorTokens + row.result().promptTokens +
                                                                          row.request().maxNewTokens - 1);
        }
    }
    if (cacheOptions.kind == KvCacheKind::Paged) {
        sizePool(cacheOptions);
    }
    chunk_ = prefillChunk(model_.context().traits(), options_.prefillChunk);
    try {
        prepare(cacheOptions);
        cache_ = std::make_unique<KvCache>(model_.context(), model_.config(), cacheOptions);
        for (const auto& row : rows_) {
            row->sequence = cache_->addSequence();
            if (options_.priorTokens > 0) {
                cache_->fillRandom(row->sequence, options_.priorTokens, options_.priorSeed);
            }
        }
        prefill(report);
        decode(report);
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

void Generator::prefill(GenerateReport& report) {
    const double begin = now();
    const kernels::TraceScope phase(model_.context().tracer(), base::ScopeKind::Phase, "prefill");
    std::int64_t total = 0;
    std::int64_t done = 0;
    for (const auto& row : rows_) {
        total += row->result().promptTokens;
    }
    std::vector<std::int64_t> prefilled(rows_.size());
    PrefillStep step = nextPrefill(prefilled);
    for (std::int32_t index = 0; !step.sequences.empty(); ++index, step = nextPrefill(prefilled)) {
        const double stepBegin = now();
        stepRows("prefill", index, step.sequences, step.sampled);
        done += step.tokens;
        report.stepSeconds = std::max(report.stepSeconds, now() - stepBegin);
        report.prefillSeconds = now() - begin;
        if (options_.progress != nullptr && total > chunk_) {
            options_.progress->progress("Reading the prompt", static_cast<std::uint64_t>(done),
                                        static_cast<std::uint64_t>(total));
        }
    }
}

void Generator::decode(GenerateReport& report) {
    const double begin = now();
    const kernels::TraceScope phase(model_.context().tracer(), base::ScopeKind::Phase, "decode");
    for (std::int32_t index = 0;; ++index) {
        index += decodeAhead(report, index, begin);
        const std::vector<Row*> rows = liveRows();
        if (rows.empty()) {
            break;
        }
        std::vector<StepSequence> sequences;
        sequences.reserve(rows.size());
        for (const Row* row : rows) {
            sequences.push_back({row->sequence, {&row->history().back(), 1}, true});
        }
        const double stepBegin = now();
        stepRows("decode", index, sequences, rows);
        report.stepSeconds = now() - stepBegin;
        report.decodedTokens += static_cast<std::int64_t>(rows.size());
        ++report.decodeSteps;
        if (options_.jumpEqualSteps) {
            jump(report, report.stepSeconds);
        }
        report.decodeSeconds = now() - begin;
    }
}

std::vector<Generator::Row*> Generator::liveRows() const {
    std::vector<Row*> rows;
    for (const auto& row : rows_) {
        if (!row->done()) {
            rows.push_back(row.get());
        }
    }
    return rows;
}

/// Steps whose ids stay on the device: each is launched before the ids of the one before it are read, so that the device
/// never waits for the host. Stop conditions lag by a step: what a request that has ended got is dropped. Returns the
/// steps done; it ends when a request ends or a step has no graph yet.
std::int32_t Generator::decodeAhead(GenerateReport& report, std::int32_t index, double phaseBegin) {
    const std::vector<Row*> rows = liveRows();
    const bool needsHistory = std::any_of(rows.begin(), rows.end(), [](const Row* row) { return row->needsHistory(); });
    if (rows.empty() || needsHistory || counts(index) || !launchRows(index, rows, false)) {
        return 0;
    }
    std::int32_t steps = 0;
    double begin = now();
    while (model_.launchedAny()) {
        std::exception_ptr failure;
        const bool someEnd =
            std::any_of(rows.begin(), rows.end(), [](const Row* row) { return row->done() || row->remaining() <= 1; });
        try {
            if (!someEnd) {
                launchRows(index + steps + 1, rows, true);
            }
        } catch (...) {
            // What the step under way gives is kept.
            failure = std::current_exception();
        }
        const StepOutput out = model_.finishLaunched();
        report.decodedTokens += std::count_if(rows.begin(), rows.end(), [](const Row* row) { return !row->done(); });
        ++report.decodeSteps;
        ++steps;
        take(out, rows);
        const double end = now();
        report.stepSeconds = end - begin;
        report.decodeSeconds = end - phaseBegin;
        begin = end;
        if (failure != nullptr) {
            std::rethrow_exception(failure);
        }
    }
    return steps;
}

bool Generator::launchRows(std::int32_t index, const std::vector<Row*>& rows, bool idsFromLast) {
    const std::vector<kernels::SampleParameters> parameters = samplingOf(rows, idsFromLast ? 1 : 0);
    StepBatch batch;
    batch.index = index;
    for (const Row* row : rows) {
        batch.sequences.push_back({row->sequence, {&row->history().back(), 1}, true});
    }
    batch.sampling = parameters;
    batch.topLogprobs = options_.topLogprobs;
    const bool launched = model_.launch(batch, *cache_, idsFromLast ? Launch::GraphOnLast : Launch::Graph);
    if (launched) {
        noteCache();
    }
    return launched;
}

void Generator::stepRows(std::string_view name, std::int32_t index, const std::vector<StepSequence>& sequences,
                         const std::vector<Row*>& sampled) {
    const std::vector<kernels::SampleParameters> parameters = samplingOf(sampled);
    StepBatch batch;
    batch.name = name;
    batch.index = index;
    batch.sequences = sequences;
    batch.sampling = parameters;
    batch.topLogprobs = options_.topLogprobs;
    batch.expertUse = name == "decode" && counts(index) ? options_.expertUse : nullptr;
    const StepOutput out = model_.step(batch, *cache_);
    noteCache();
    take(out, sampled);
}

void Generator::take(const StepOutput& out, const std::vector<Row*>& rows) {
    const auto best = static_cast<std::size_t>(options_.topLogprobs);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i]->done()) {
            continue;
        }
        std::vector<std::pair<std::int32_t, float>> top;
        top.reserve(best);
        for (std::size_t j = 0; j < best; ++j) {
            top.emplace_back(out.topIds[i * best + j], out.topLogprobs[i * best + j]);
        }
        accept(*rows[i], out.ids[i], out.logprobs[i], std::move(top));
    }
}

void Generator::accept(Row& row, std::int32_t id, float logprob, std::vector<std::pair<std::int32_t, float>> top) {
    TakenToken taken = row.take(model_.context().tracer(), id, logprob, std::move(top));
    taken.token.time = model_.context().clock().now();
    if (*onToken_) {
        (*onToken_)(taken.token);
    }
    if (taken.finish != FinishReason::None) {
        row.end(taken.finish);
        cache_->removeSequence(row.sequence);
        row.sequence = -1;
    }
}

void Generator::jump(GenerateReport& report, double stepSeconds) {
    std::vector<int> sequences;
    std::vector<KvAppend> appends;
    std::int64_t count = kLongestJump;
    for (const auto& row : rows_) {
        if (!row->done()) {
            sequences.push_back(row->sequence);
            // The last token is left for a step of its own, so that the run ends as it would.
            count = std::min(count, row->remaining() - 1);
        }
    }
    if (sequences.empty()) {
        return;
    }
    count = std::min(count, cache_->roomBeforeGrowth(sequences));
    if (count <= 0) {
        return;
    }
    for (const auto& row : rows_) {
        if (!row->done()) {
            appends.push_back({row->sequence, count});
            row->skip(count);
        }
    }
    model_.context().passTime(stepSeconds * static_cast<double>(count));
    model_.context().joinStreams();
    cache_->commit(appends);
    noteCache();
    report.decodeSteps += count;
    report.decodedTokens += count * static_cast<std::int64_t>(sequences.size());
}

void Generator::noteCache() {
    report_->kvBytes = std::max(report_->kvBytes, cache_->usedBytes());
    const std::uint64_t pages = cache_->bytes();
    if (pages > report_->kvPageBytes) {
        report_->kvPageBytes = pages;
        report_->kvGroupBytes.clear();
        for (std::size_t group = 0; group < cache_->groups().size(); ++group) {
            report_->kvGroupBytes.emplace_back(cache_->groups()[group].name, cache_->bytes(static_cast<int>(group)));
        }
    }
}

} // namespace vitrine::engine
