// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/batch/batch.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/percentile.h"
#include "engine/checkpoint/token_rows.h"
#include "engine/generation/batch_pool.h"
#include "engine/workload/batch/batch_answers.h"
#include "engine/workload/common/run_adapter.h"
#include "engine/workload/common/run_speculation.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

/// What a row asks for beyond what the experiment says of all.
void applyRow(const TraceRow& row, GenerateRequest& request, bool meta) {
    request.maxNewTokens = row.maxNewTokens > 0 ? row.maxNewTokens : request.maxNewTokens;
    Sampling& sampling = request.sampling;
    sampling.temperature = row.temperature ? usableTemperature(*row.temperature) : sampling.temperature;
    sampling.topK = static_cast<std::int32_t>(row.topK.value_or(sampling.topK));
    sampling.topP = static_cast<float>(row.topP.value_or(sampling.topP));
    sampling.minP = static_cast<float>(row.minP.value_or(sampling.minP));
    sampling.repetitionPenalty = static_cast<float>(row.repetitionPenalty.value_or(sampling.repetitionPenalty));
    sampling.frequencyPenalty = static_cast<float>(row.frequencyPenalty.value_or(sampling.frequencyPenalty));
    sampling.presencePenalty = static_cast<float>(row.presencePenalty.value_or(sampling.presencePenalty));
    if (row.seed) {
        sampling.seed = static_cast<std::uint64_t>(*row.seed);
        request.samplingNumber = 0; // the seed alone says what is drawn, wherever the row stands
    }
    request.stopTexts.insert(request.stopTexts.end(), row.stop.begin(), row.stop.end());
    if (row.stopTokens && !meta) {
        request.stopTokens = *row.stopTokens;
    }
}

/// Requests beyond what the model was made for are refused, or their answers cut, in plans too. Returns whether it was
/// cut.
bool limitRow(ArrivingRequest& item, std::int64_t limit) {
    const auto prompt = static_cast<std::int64_t>(item.request.prompt.size());
    if (limit == 0) {
        return false;
    }
    if (prompt + 1 > limit) {
        item.refusal =
            fmt::format("its prompt of {} tokens leaves no room in the model's context of {}", prompt, limit);
        return false;
    }
    const std::int64_t wanted =
        std::exchange(item.request.maxNewTokens, std::min(item.request.maxNewTokens, limit - prompt));
    item.request.cutToContext = wanted > item.request.maxNewTokens;
    return item.request.cutToContext;
}

/// The tokenizer is there for every row, wherever the first text stands.
void prepareTexts(RequestMaker& maker, const ModelSource& source, const std::vector<TraceRow>& rows) {
    const auto text =
        std::find_if(rows.begin(), rows.end(), [](const TraceRow& row) { return row.prompt.has_value(); });
    if (text == rows.end()) {
        return;
    }
    if (source.tokenizerFile.empty()) {
        throw base::BadInput(fmt::format("{}: prompt: {} has no tokenizer.json; give tokens or prompt_length",
                                         text->place, source.name));
    }
    maker.prepareText();
}

/// Refused requests show in the numbers; why, for the first of them.
void logRefused(const BatchEngine& engine, const std::vector<TraceRow>& rows) {
    std::size_t count = 0;
    std::string first;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string& reason = engine.result(static_cast<std::int32_t>(i)).refusal;
        count += reason.empty() ? 0 : 1;
        first = first.empty() && !reason.empty() ? fmt::format("{}: {}", rows[i].idJson().dump(), reason) : first;
    }
    if (count > 0) {
        base::logWarning(fmt::format("{} of {} requests were refused, the first being {}", count, rows.size(), first));
    }
}

double seconds(base::TimeNs from, base::TimeNs to) {
    return static_cast<double>(to - from) * 1e-9;
}

} // namespace

std::vector<TraceRow> traceOf(const Run& run) {
    const std::string trace = run.spec.text("trace");
    std::vector<TraceRow> rows;
    if (isTraceRecipe(trace)) {
        TraceRecipe recipe;
        recipe.kind = trace;
        recipe.requests = run.spec.integer("requests");
        recipe.prompt = parseLengthRange(run.spec.text("prompt_tokens"), "prompt_tokens");
        recipe.answer = parseLengthRange(run.spec.text("new_tokens"), "new_tokens");
        recipe.rate = run.spec.real("rate");
        recipe.seed = run.seed();
        rows = makeRequestTrace(recipe);
    } else if (std::error_code none; !std::filesystem::exists(trace, none)) {
        throw base::BadInput(trace + ": is no file, and none of fixed, uniform, poisson, long-tail");
    } else {
        rows = readRequestTrace(trace);
    }
    if (const std::string path = run.spec.text("save_trace"); !path.empty()) {
        writeRequestTrace(path, rows);
    }
    return rows;
}

BatchWork batchWork(const Run& run, const ModelSource& source, const std::vector<TraceRow>& rows, bool meta) {
    BatchWork work;
    RequestMaker maker(run, source, meta);
    prepareTexts(maker, source, rows);
    const auto seed = run.seed();
    std::int64_t tokens = 0;
    std::int64_t cut = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const TraceRow& row = rows[i];
        ArrivingRequest& item = work.requests.emplace_back();
        item.arrival = row.arrival;
        if (row.prompt) {
            item.request = maker.fromText(*row.prompt);
        } else if (row.promptLength > 0) {
            // A plan holds as much for one token as for another, unless prompts that begin alike share pages.
            item.request = maker.fromTokens(
                meta && !run.spec.flag("share_prefixes")
                    ? std::vector<std::int32_t>(static_cast<std::size_t>(row.promptLength))
                    : arbitraryTokens(row.promptLength, source.config.vocab, seed, static_cast<std::uint32_t>(i)));
        } else {
            checkTokenIds({row.tokens}, source.config.vocab, row.place + ": tokens");
            item.request = maker.fromTokens(row.tokens);
        }
        applyRow(row, item.request, meta);
        if (!item.request.stopTexts.empty() && maker.tokenizer() == nullptr) {
            throw base::BadInput((row.stop.empty() ? "" : row.place + ": ") +
                                 "stop: needs a prompt given as text; with tokens there is no text to search");
        }
        cut += limitRow(item, contextLimit(source.config)) ? 1 : 0;
        const auto prompt = static_cast<std::int64_t>(item.request.prompt.size());
        tokens += prompt;
        if (tokens > kMostTraceTokens) {
            throw base::BadInput(fmt::format("{}: prompt: the trace has more than {} prompt tokens in all", row.place,
                                             kMostTraceTokens));
        }
        if (item.refusal.empty()) {
            work.longestPrompt = std::max(work.longestPrompt, prompt);
            work.longestSequence = std::max(work.longestSequence, prompt + item.request.maxNewTokens - 1);
        }
    }
    if (cut > 0 && !run.sinks.quiet) {
        base::logWarning(
            fmt::format("max_new_tokens: cut for {} of {} requests, to the rest of the model's context of {}", cut,
                        rows.size(), contextLimit(source.config)));
    }
    work.tokenizer = maker.tokenizer();
    work.mostForbidden = maker.mostForbidden();
    work.answerForm = maker.answerForm();
    return work;
}

BatchOptions batchOptions(const Run& run, const ModelOptions& model, const BatchWork& work, const ModelConfig& config) {
    BatchOptions options;
    options.cache = generateOptions(run, model).cache;
    options.cache.kind = KvCacheKind::Paged;
    options.cache.poolPages = run.spec.integer("kv_pages");
    options.cache.sharePrefixes = run.spec.flag("share_prefixes");
    SchedulerOptions& scheduler = options.scheduler;
    scheduler.mode = run.spec.text("mode") == "static" ? BatchMode::Static : BatchMode::Continuous;
    scheduler.slots = static_cast<std::int32_t>(run.spec.integer("slots"));
    const std::string order = run.spec.text("scheduler");
    scheduler.order = order == "prefill-first"   ? BatchOrder::PrefillFirst
                      : order == "longest-first" ? BatchOrder::LongestFirst
                                                 : BatchOrder::Fifo;
    const std::string preemption = run.spec.text("preemption");
    scheduler.preemption = preemption == "off"    ? Preemption::Off
                           : preemption == "swap" ? Preemption::Swap
                                                  : Preemption::Recompute;
    scheduler.tokenBudget = run.spec.integer("token_budget");
    scheduler.gatherSteps = static_cast<std::int32_t>(run.spec.integer("gather_steps"));
    scheduler.swapPages = swapPagesIn(run.spec.bytes("swap_space"), config, options.cache);
    options.answerForm = work.answerForm;
    options.longestPrompt = work.longestPrompt;
    options.longestSequence = work.longestSequence;
    options.mostForbidden = work.mostForbidden;
    options.progress = run.sinks.progress;
    return options;
}

Json percentilesJson(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    Json out = Json::object();
    for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}}) {
        const auto value = base::percentile(values, share);
        out[name] = value ? Json(*value) : Json();
    }
    double sum = 0;
    for (const double value : values) {
        sum += value;
    }
    out["mean"] = values.empty() ? Json() : Json(sum / static_cast<double>(values.size()));
    return out;
}

void BatchTally::note(Time time, double took) {
    Times& times = times_[static_cast<std::size_t>(time)];
    if (times.values.size() < kMostTimes) {
        times.values.push_back(took);
        return;
    }
    times.values[times.next] = took;
    times.next = (times.next + 1) % kMostTimes;
}

void BatchTally::add(const BatchResult& result) {
    ++requests_;
    const FinishReason finish = result.result.finish;
    refused_ += result.refusal.empty() ? 0 : 1;
    cancelled_ += finish == FinishReason::Cancelled ? 1 : 0;
    failed_ += finish == FinishReason::OutOfMemory || finish == FinishReason::Failed ? 1 : 0;
    if (result.refusal.empty()) {
        ++endings_[static_cast<std::size_t>(finish)];
    }
    const bool finished = isComplete(finish);
    finished_ += finished ? 1 : 0;
    if (result.admitted < 0) {
        return;
    }
    const base::TimeNs arrival = std::max(result.arrival, from_);
    begin_ = any_ ? std::min(begin_, arrival) : arrival;
    any_ = true;
    end_ = std::max({end_, result.firstToken, result.end, begin_});
    if (result.firstToken >= 0) {
        note(Time::First, seconds(result.arrival, result.firstToken));
    }
    if (result.end >= 0 && finished) {
        note(Time::Whole, seconds(result.arrival, result.end));
        const auto tokens = static_cast<double>(result.result.ids.size());
        if (tokens > 1) {
            note(Time::PerToken, seconds(result.firstToken, result.end) / (tokens - 1));
        }
    }
}

void BatchTally::addTo(Json& metrics, std::int64_t generated, base::TimeNs until) const {
    const double took = seconds(begin_, std::max(end_, until));
    metrics[result::kRequests.key] = requests_;
    metrics[result::kFinishedRequests.key] = finished_;
    metrics[result::kRefusedRequests.key] = refused_;
    metrics[result::kCancelledRequests.key] = cancelled_;
    metrics[result::kFailedRequests.key] = failed_;
    metrics[result::kFinishReasons.key] = finishCountsJson(endings_);
    metrics[result::kGeneratedTokens.key] = generated;
    metrics[result::kSeconds.key] = took;
    metrics[result::kTokensPerSecond.key] = took > 0 ? static_cast<double>(generated) / took : 0.0;
    metrics[result::kTtft.key] = percentilesJson(times_[static_cast<std::size_t>(Time::First)].values);
    metrics[result::kTpot.key] = percentilesJson(times_[static_cast<std::size_t>(Time::PerToken)].values);
    metrics[result::kE2e.key] = percentilesJson(times_[static_cast<std::size_t>(Time::Whole)].values);
}

void addBatchMetrics(Json& metrics, const BatchEngine& engine) {
    BatchTally tally;
    for (std::int32_t i = 0; i < engine.scheduler().requests(); ++i) {
        tally.add(engine.result(i));
    }
    addBatchMetrics(metrics, engine, tally);
}

void addBatchMetrics(Json& metrics, const BatchEngine& engine, const BatchTally& tally) {
    const BatchCounts& counts = engine.counts();
    tally.addTo(metrics, counts.generated);
    metrics[result::kSteps.key] = counts.steps;
    metrics[result::kStepTokens.key] = engine.scheduler().options().tokenBudget;
    metrics[result::kDecodeSteps.key] = counts.samplingSteps;
    metrics[result::kStepsLaunchedAhead.key] = counts.aheadSteps;
    const double cells =
        static_cast<double>(engine.scheduler().options().slots) * static_cast<double>(counts.samplingSteps);
    // A slot that got several tokens of a draft in a step was in use once.
    const std::int64_t used = counts.generated - engine.speculation().accepted;
    metrics[result::kSlotUtilization.key] = cells > 0 ? static_cast<double>(used) / cells : 0.0;
    metrics[result::kPrefillTokens.key] = counts.prefillTokens;
    metrics[result::kRecomputedTokens.key] = counts.recomputedTokens;
    metrics[result::kPaddingTokens.key] = counts.paddingTokens;
    metrics[result::kPrefillSeconds.key] = counts.prefillSeconds;
    metrics[result::kDecodeSeconds.key] = counts.decodeSeconds;
    metrics[result::kPreemptions.key] = counts.preemptions;
    metrics[result::kSwaps.key] = counts.swaps;
    metrics[result::kSwapBytes.key] = counts.swapBytes;
    metrics[result::kSwapMostPages.key] = counts.mostSwappedPages;
    metrics[result::kSwapHostBytes.key] = counts.swapHostBytes;
    metrics[result::kLostSwaps.key] = counts.lostSwaps;
    metrics[result::kOutOfMemorySteps.key] = counts.outOfMemorySteps;
    if (!engine.lastOutOfMemory().empty()) {
        metrics[result::kLastOutOfMemory.key] = engine.lastOutOfMemory();
    }
    const KvCache& cache = engine.cache();
    const PageCounts pages = cache.book()->counts();
    metrics[result::kKvPoolBytes.key] = cache.poolBytes();
    metrics[result::kKvPoolPages.key] = pages.used + pages.cached + pages.free;
    metrics[result::kKvPoolLimitPages.key] = pages.used + pages.cached + pages.free + pages.unbacked;
    metrics[result::kKvMostPages.key] = counts.mostUsedPages;
    metrics[result::kKvBytes.key] = counts.kvBytes;
    metrics[result::kKvPageBytes.key] = counts.kvPageBytes;
    metrics[result::kKvFragmentation.key] = counts.worstFragmentation;
    metrics[result::kKvEvictions.key] = cache.book()->evictions();
    metrics[result::kSharedPrefixTokens.key] = counts.sharedTokens;
    metrics[result::kSharedPrefixRequests.key] = counts.sharingRequests;
    metrics[result::kKvKeptRings.key] = cache.book()->keptRings();
}

BatchForwarder::BatchForwarder(const WorkloadSinks& sinks, const kernels::Context& context, const BatchEngine& engine)
    : sinks_(sinks), context_(context), engine_(engine), start_(context.clock().now()), last_(-1'000'000'000) {}

void BatchForwarder::operator()(const GeneratedToken& token) {
    if (sinks_.token) {
        sinks_.token(streamed(token));
    }
    constexpr base::TimeNs kInterval = 100'000'000;
    const base::TimeNs now = context_.clock().now();
    if (sinks_.metric && now - last_ >= kInterval) {
        last_ = now;
        const double passed = seconds(start_, now);
        sinks_.metric("kv_bytes", static_cast<double>(engine_.cache().bytes()));
        sinks_.metric("decode_tokens", static_cast<double>(engine_.counts().generated));
        sinks_.metric("tokens_per_second", passed > 0 ? static_cast<double>(engine_.counts().generated) / passed : 0.0);
    }
}

void serveBatch(const Run& run, kernels::Context& context, const ModelSource& source,
                const std::vector<TraceRow>& rows) {
    Json& metrics = run.metrics;
    BatchWork work = batchWork(run, source, rows, !context.can().computesValues);
    const bool hasText = work.tokenizer != nullptr;
    const ModelOptions options = modelOptions(run, context, run.spec.text("weights"));
    Model model(context, source, options, run.sinks.progress);
    addLoadMetrics(metrics, model.loadReport());
    const std::unique_ptr<Adapter> adapter = loadAdapter(run, model);
    BatchOptions batch = batchOptions(run, options, work, model.config());
    const RunSpeculation speculation(run, source, context, batch.cache,
                                     DraftPool{batch.scheduler.slots, work.longestSequence});
    batch.speculation = speculation.speculation();
    batch.jumpEqualSteps = !context.can().computesValues;
    reportKvMetrics(run, model.config(), batch.cache);
    metrics[result::kMode.key] = run.spec.text("mode");
    metrics[result::kSlots.key] = batch.scheduler.slots;
    BatchEngine engine(model, work.tokenizer, batch);
    engine.prepare();
    engine.onToken(BatchForwarder(run.sinks, context, engine));
    engine.onEnd([&run, total = rows.size(), ended = std::size_t{0}](std::int32_t) mutable {
        ++ended;
        const bool isPercent = ended * 100 / total != (ended - 1) * 100 / total;
        if (run.sinks.progress != nullptr && isPercent) {
            run.sinks.progress->progress("Serving requests", ended, total);
        }
    });
    const std::string answers =
        run.spec.flag("plan") ? std::string() : run.spec.text("outputs"); // a plan answers nothing
    try {
        replayRequests(engine, context, std::move(work.requests));
    } catch (...) {
        addBatchMetrics(metrics, engine);
        speculation.addMetrics(metrics, engine.speculation());
        try {
            writeAnswers(answers, engine, rows, hasText);
        } catch (const base::BadInput& second) {
            base::logWarning(second.message()); // what ended the run is the error
        }
        throw;
    }
    addBatchMetrics(metrics, engine);
    speculation.addMetrics(metrics, engine.speculation());
    if (!run.sinks.quiet) {
        logRefused(engine, rows);
    }
    writeAnswers(answers, engine, rows, hasText);
}

} // namespace vitrine::engine
