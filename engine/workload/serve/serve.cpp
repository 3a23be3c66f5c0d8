// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/serve/serve.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/workload/batch/batch.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/run_adapter.h"
#include "engine/workload/common/run_speculation.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 9> kServeResults = {result::kRunSet,    result::kMemorySet,      result::kLoadingSet,
                                                    result::kKernelSet, result::kRateSet,        result::kAnswerSet,
                                                    result::kKvSet,     result::kSpeculationSet, result::kBatchSet};

using Json = nlohmann::json;

constexpr auto kServeSharedKeys = withSpeculationKeys(std::to_array<std::string_view>({"adapter", "kv_dtype"}));
constexpr std::array<std::string_view, 1> kServeViews = {"batching"};

/// Columns as in option_table.cpp.
constexpr std::array kServeOptions = {
    OptionSpec{"session_limit", OptionType::Bytes, "512MiB", "", 0, 0, "", "bytes", "Experiment",
               "What a server keeps of itself in its session; the oldest parts of it are deleted. 0: everything"},
};

/// The longest sequence that the scheduler would not refuse.
std::int64_t longestHeld(const BatchEngine& engine) {
    const PageBook& book = *engine.cache().book();
    const std::int64_t others = engine.scheduler().options().otherPages;
    std::int64_t held = 0;
    for (std::int64_t step = std::int64_t{1} << 40; step > 0; step /= 2) {
        held += book.couldHold(held + step, others) ? step : 0;
    }
    return held;
}

/// Between the feed and the engine.
class Service {
public:
    Service(const Run& run, kernels::Context& context, BatchEngine& engine, RequestFeed& feed)
        : run_(run), context_(context), engine_(engine), feed_(feed), forward_(run.sinks, context, engine),
          part_(context.clock().now()) {
        engine_.onToken([this](const GeneratedToken& token) {
            forward_(token);
            open_.at(token.request)->token(token);
        });
        engine_.onEnd([this](std::int32_t request) { end(request); });
    }

    void serve() {
        bool wait = true;
        reportStatus();
        for (;;) {
            FedWork work = feed_.take(wait);
            for (FedRequest& item : work.arrived) {
                add(std::move(item));
            }
            for (const std::shared_ptr<const RequestListener>& listener : work.left) {
                if (const auto found = numbers_.find(listener.get()); found != numbers_.end()) {
                    engine_.cancel(found->second);
                }
            }
            if (work.over && open_.empty()) {
                break;
            }
            if (!work.arrived.empty() || !work.left.empty()) {
                reportStatus();
            }
            wait = !engine_.step();
            reportOutOfMemory();
            const base::TimeNs now = context_.clock().now();
            if (run_.sinks.partIsFull && run_.sinks.partIsFull()) {
                endPart(now);
            }
            const bool moved =
                engine_.scheduler().running() != reportedRunning_; // this step admitted or ended a request
            if (wait || moved || now - reported_ >= kReportEvery) {
                reportStatus();
            }
        }
        engine_.finish();
    }

    /// The engine serves no more.
    void abandon(FinishReason reason) {
        engine_.abandon(reason);
        std::unordered_map<std::int32_t, std::shared_ptr<RequestListener>> open;
        open.swap(open_);
        for (const auto& [number, listener] : open) {
            const BatchResult result = engine_.takeResult(number);
            count(result);
            listener->ended(result);
        }
    }

    const BatchTally& tally() const { return tally_; }

private:
    void add(FedRequest item) {
        if (engine_.scheduler().requests() == std::numeric_limits<std::int32_t>::max()) {
            BatchResult none;
            none.result.finish = FinishReason::Cancelled;
            item.listener->ended(none); // no number is left; only a new run has some
            return;
        }
        const auto waited = std::chrono::steady_clock::now() - item.received;
        const base::TimeNs now = context_.clock().now();
        const base::TimeNs arrival = context_.can().virtualTime
                                         ? now
                                         : now - std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count();
        const std::int32_t number = engine_.add(std::move(item.request), std::max<base::TimeNs>(arrival, 0));
        numbers_.emplace(item.listener.get(), number);
        open_.emplace(number, std::move(item.listener));
        if (engine_.ended(number)) {
            end(number); // refused: the engine does not report its end
        }
    }

    void end(std::int32_t number) {
        const auto found = open_.find(number);
        const std::shared_ptr<RequestListener> listener = std::move(found->second);
        open_.erase(found);
        numbers_.erase(listener.get());
        const BatchResult result = engine_.takeResult(number);
        count(result);
        reportBroken(result);
        if (run_.sinks.requestEnded) {
            run_.sinks.requestEnded(number);
        }
        listener->ended(result);
    }

    /// The client gets the reason too; whoever looks after the server needs it once.
    void reportBroken(const BatchResult& result) {
        if (result.result.finish == FinishReason::Failed && !result.failure.empty() &&
            !std::exchange(brokenReported_, true)) {
            base::logWarning(fmt::format("a request failed: {}", result.failure));
        }
    }

    void count(const BatchResult& result) {
        tally_.add(result);
        part_.add(result);
    }

    /// The part has the numbers of the requests that ended in it.
    void endPart(base::TimeNs now) {
        engine_.reportSlots();
        Json metrics = Json::object();
        const std::int64_t generated = engine_.counts().generated;
        part_.addTo(metrics, generated - generatedBefore_, now);
        run_.sinks.nextPart(metrics);
        part_ = BatchTally(now);
        generatedBefore_ = generated;
    }

    void reportStatus() {
        reported_ = context_.clock().now();
        ServeStatus status;
        status.running = engine_.scheduler().running();
        reportedRunning_ = status.running;
        status.waiting = engine_.scheduler().queued();
        status.pages = engine_.cache().book()->counts();
        status.generated = engine_.counts().generated;
        status.requests = engine_.scheduler().requests();
        status.outOfMemorySteps = engine_.counts().outOfMemorySteps;
        status.stepTokens = engine_.scheduler().options().tokenBudget;
        feed_.status(status);
    }

    /// A step that did not fit memory is reported where people look; the session has the event itself.
    void reportOutOfMemory() {
        const BatchCounts& counts = engine_.counts();
        if (counts.outOfMemorySteps + counts.lostSwaps == reportedMemory_) {
            return;
        }
        const base::TimeNs now = context_.clock().now();
        if (reportedMemory_ == 0 || now - warned_ >= kWarnEvery) {
            warned_ = now;
            base::logWarning(fmt::format("{}; {} steps did not fit so far, {} requests ended by that",
                                         engine_.lastOutOfMemory(), counts.outOfMemorySteps, counts.failedRequests));
        }
        reportedMemory_ = counts.outOfMemorySteps + counts.lostSwaps;
        if (run_.sinks.fact) {
            run_.sinks.fact("out_of_memory_steps", counts.outOfMemorySteps);
            run_.sinks.fact("failed_requests", counts.failedRequests);
            run_.sinks.fact("last_out_of_memory", engine_.lastOutOfMemory());
        }
    }

    static constexpr base::TimeNs kReportEvery = 200'000'000;
    static constexpr base::TimeNs kWarnEvery = 60'000'000'000;

    const Run& run_;
    kernels::Context& context_;
    BatchEngine& engine_;
    RequestFeed& feed_;
    BatchForwarder forward_;
    BatchTally tally_;
    BatchTally part_; ///< since the present part of the session began
    std::int64_t generatedBefore_ = 0;
    base::TimeNs reported_ = 0;
    std::int64_t reportedRunning_ = 0;
    base::TimeNs warned_ = 0;
    bool brokenReported_ = false;
    std::int64_t reportedMemory_ = 0;                                         ///< steps and swaps that did not fit
    std::unordered_map<std::int32_t, std::shared_ptr<RequestListener>> open_; ///< by number
    std::unordered_map<const RequestListener*, std::int32_t> numbers_;
};

ServedModel servedModel(const Run& run, const ModelSource& source, const RequestMaker& maker,
                        const BatchEngine& engine) {
    ServedModel served;
    served.name = run.spec.text("model");
    served.maker = &maker;
    served.tokenizer = maker.tokenizer();
    served.harmony = maker.hasChat() && maker.answerForm() == AnswerForm::Harmony;
    served.textIsBytes = served.tokenizer == nullptr && source.synthetic();
    served.vocab = source.config.vocab;
    served.slots = engine.scheduler().options().slots;
    served.sharesPrefixes = engine.cache().book()->sharesPrefixes();
    // The last token of an answer is not fed back.
    served.longest = longestHeld(engine) + 1;
    served.whyNotLonger = "what the KV cache holds (kv_pages, vram_budget)";
    if (const std::int64_t limit = contextLimit(source.config); limit > 0 && limit <= served.longest) {
        served.longest = limit;
        served.whyNotLonger = "the model's context";
    }
    return served;
}

/// Why messages cannot be given; empty: they can.
std::string prepareText(RequestMaker& maker, const ModelSource& source) {
    if (source.tokenizerFile.empty()) {
        return "the model has no tokenizer";
    }
    try {
        maker.prepareText();
    } catch (const base::Unsupported& error) {
        if (maker.tokenizer() == nullptr) {
            throw;
        }
        return error.message();
    }
    return maker.hasChat() ? "" : "the server was started with raw";
}

void serveFeed(const Run& run, kernels::Context& context, const ModelSource& source, RequestFeed& feed) {
    Json& metrics = run.metrics;
    RequestMaker maker(run, source, !context.can().computesValues);
    const std::string whyNoChat = prepareText(maker, source);
    if (maker.tokenizer() == nullptr && !run.spec.texts("stop").empty()) {
        throw base::BadInput(source.name + ": stop: needs a tokenizer, and the model has none");
    }
    const ModelOptions options = modelOptions(run, context, run.spec.text("weights"));
    Model model(context, source, options, run.sinks.progress);
    addLoadMetrics(metrics, model.loadReport());
    const std::unique_ptr<Adapter> adapter = loadAdapter(run, model);
    BatchWork work;
    work.tokenizer = maker.tokenizer();
    work.answerForm = maker.answerForm();
    work.longestPrompt = work.longestSequence = 0;
    // Lists of ids, among them those that must not end an answer early, and of ids with a bias.
    work.mostForbidden = 2 * maker.mostForbidden() + kMostStopTokensOfClient + 2 * kMostBiasedTokens;
    BatchOptions batch = batchOptions(run, options, work, model.config());
    batch.survivesOutOfMemory = true;
    batch.survivesBrokenNumbers = true;
    const RunSpeculation speculation(run, source, context, batch.cache, DraftPool{batch.scheduler.slots, 0});
    batch.speculation = speculation.speculation();
    reportKvMetrics(run, model.config(), batch.cache);
    metrics[result::kMode.key] = "continuous";
    metrics[result::kSlots.key] = batch.scheduler.slots;
    BatchEngine engine(model, work.tokenizer, batch);
    engine.prepare();
    Service service(run, context, engine, feed);
    const kernels::TraceScope phase(context.tracer(), base::ScopeKind::Phase, "serve");
    ServedModel served = servedModel(run, source, maker, engine);
    served.whyNoChat = served.textIsBytes ? "" : whyNoChat;
    feed.ready(served);
    const auto addMetrics = [&] {
        addBatchMetrics(metrics, engine, service.tally());
        speculation.addMetrics(metrics, engine.speculation());
    };
    const auto failed = [&](FinishReason reason, const std::string& why) {
        service.abandon(reason);
        feed.ended(why);
        addMetrics();
    };
    try {
        service.serve();
    } catch (const base::Error& error) {
        failed(finishReasonOf(error), error.message());
        throw;
    } catch (const std::exception& error) {
        failed(FinishReason::Failed, error.what());
        throw;
    }
    feed.ended({});
    addMetrics();
}

/// Serves run.sinks.feed until it is over.
void runServe(const Run& run) {
    if (run.sinks.feed == nullptr) {
        throw base::BadInput("workload: serve needs clients; start it with `vitrine serve`");
    }
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    runMeasured(run, *context, [&] { serveFeed(run, *context, source, *run.sinks.feed); });
}

std::string listName(const Experiment& experiment) {
    return fmt::format("serve, {} slots, {}", experiment.integer("slots"), modelName(experiment));
}

} // namespace

constinit const Workload kServeWorkload = {
    .name = "serve",
    .title = "Serve",
    .optionSets = kModelOptions | kWeightsOptions | kDeviceOptions | kRankOptions | kRunOptions | kAnswerOptions |
                  kTextOptions | kBatchingOptions,
    .optionKeys = kServeSharedKeys,
    .ownOptions = kServeOptions,
    .ownOptionsBefore = "kv_pages",
    .check = checkSpeculation,
    .run = runServe,
    .servesClients = true,
    .results = kServeResults,
    .runName = listName,
    .views = kServeViews,
};

} // namespace vitrine::engine
