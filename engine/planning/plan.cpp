// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Planning runs the workload's own code on Meta, so what it predicts is what a run would allocate. Searches use a fresh
// context for every try: nothing that a larger try left behind may count.

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "engine/workload/batch.h"
#include "engine/workload/batch_answers.h"
#include "engine/workload/decode_roofline.h"
#include "engine/workload/experiment.h"
#include "engine/workload/load_metrics.h"
#include "engine/workload/run_setup.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLongestContext = std::int64_t{1} << 20;
constexpr std::int64_t kLargestBatch = 4096;
constexpr std::int64_t kMostSearchedTokens = std::int64_t{1} << 25; ///< prompt tokens of the largest try

Json outOfMemoryJson(const base::OutOfMemory& error) {
    const base::OutOfMemoryFacts& facts = error.facts();
    Json holders = Json::array();
    for (const auto& holder : facts.holders) {
        holders.push_back({{"category", holder.category}, {"layer", holder.layer}, {"bytes", holder.bytes}});
    }
    return {{"message", error.message()},   {"what", facts.what}, {"requested", facts.requested},
            {"budget", facts.budget},       {"held", facts.held}, {"largest_free", facts.largestFree},
            {"holders", std::move(holders)}};
}

/// Memory metrics of what does not fit: as if the budget had no end, and how much is missing.
void addNeed(Json& metrics, kernels::Context& bounded, kernels::Context& unbounded) {
    addMemoryMetrics(metrics, unbounded);
    const std::uint64_t budget = bounded.memory().budget();
    const std::uint64_t needed = unbounded.memory().statistics().peakReserved;
    metrics["budget_bytes"] = budget;
    metrics["short_by_bytes"] = needed > budget ? needed - budget : 0;
}

/// One run of generate on Meta.
struct Attempt {
    bool fits = false;
    std::uint64_t reserved = 0; ///< most that was asked of the device
    GenerateReport report;
    LoadReport load;
    std::optional<DecodeRoofline> roofline;
};

class GeneratePlanner {
public:
    GeneratePlanner(const Run& run, const ModelSource& source) : run_(run), source_(source) {}

    /// Fills run.metrics with the plan itself.
    void plan() {
        const std::unique_ptr<kernels::Context> context = makePlanContext(run_, run_.sinks.trace);
        const Prompts prompts = makePrompts(run_, source_, true);
        Attempt attempt;
        Json& metrics = run_.metrics;
        try {
            runMeasured(run_, *context, [&] { price(*context, prompts.requests, &metrics, attempt); });
        } catch (const base::Cancelled&) {
            if (attempt.load.residentBytes > 0) {
                addAttempt(attempt, prompts);
            }
            throw;
        }
        metrics["fits"] = attempt.fits;
        if (!attempt.fits) {
            const std::unique_ptr<kernels::Context> unbounded = makePlanContext(run_, nullptr, false);
            attempt = {};
            price(*unbounded, prompts.requests, nullptr, attempt);
            addNeed(metrics, *context, *unbounded);
        }
        addAttempt(attempt, prompts);
        if (attempt.roofline) {
            addRooflineMetrics(run_, *context, *attempt.roofline);
        }
    }

    /// The longest context (prompt and new tokens of each request) that fits; 0: none.
    void searchContext() {
        const std::int64_t copies = run_.integer("batch", 1);
        const std::int64_t positions = source_.config.maxPositions > 0 ? source_.config.maxPositions : kLongestContext;
        const std::int64_t limit = std::clamp<std::int64_t>(kMostSearchedTokens / copies, 1, positions);
        const std::int64_t found = largest(limit, limit, [&](std::int64_t context) {
            GenerateRequest request;
            request.prompt.assign(static_cast<std::size_t>(std::max<std::int64_t>(context - 1, 1)), 0);
            request.maxNewTokens = 1;
            return probe(request, copies);
        });
        run_.metrics["max_context"] = found;
        run_.metrics["max_context_limited_by"] = found < limit ? "memory" : limit == positions ? "model" : "search";
    }

    /// The largest number of copies of the prompt that fit together; 0: none.
    void searchBatch() {
        Json alone = run_.spec;
        alone["batch"] = 1;
        const Prompts prompts = makePrompts(Run{alone, run_.sinks, run_.stop, run_.metrics}, source_, true);
        const auto length = static_cast<std::int64_t>(prompts.requests.front().prompt.size());
        const std::int64_t limit = std::clamp<std::int64_t>(kMostSearchedTokens / length, 1, kLargestBatch);
        const std::int64_t found =
            largest(1, limit, [&](std::int64_t copies) { return probe(prompts.requests.front(), copies); });
        run_.metrics["max_batch"] = found;
        run_.metrics["max_batch_limited_by"] = found == limit ? "search" : "memory";
    }

private:
    /// Of one that was cancelled: as far as it came.
    void addAttempt(const Attempt& attempt, const Prompts& prompts) {
        Json& metrics = run_.metrics;
        metrics["load_seconds"] = attempt.load.seconds;
        metrics["resident_bytes"] = attempt.load.residentBytes;
        std::int64_t promptTokens = 0;
        for (const GenerateRequest& request : prompts.requests) {
            promptTokens = std::max(promptTokens, static_cast<std::int64_t>(request.prompt.size()));
        }
        metrics["prompt_tokens"] = promptTokens;
        metrics["batch"] = prompts.requests.size();
        metrics["max_new_tokens"] = run_.integer("max_new_tokens", 128);
        metrics["prefill_seconds"] = attempt.report.prefillSeconds;
        metrics["decode_seconds"] = attempt.report.decodeSeconds;
        metrics["decode_tokens_per_second"] =
            attempt.report.decodeSeconds > 0
                ? static_cast<double>(attempt.report.decodedTokens) / attempt.report.decodeSeconds
                : 0.0;
        metrics["step_seconds_estimate"] = attempt.report.stepSeconds;
        metrics["kv_bytes"] = attempt.report.kvBytes;
        metrics["kv_page_bytes"] = attempt.report.kvPageBytes;
        Json groups = Json::object();
        for (const auto& [name, bytes] : attempt.report.kvGroupBytes) {
            groups[name] = bytes;
        }
        metrics["kv_page_bytes_by_group"] = std::move(groups);
    }

    /// Fills `attempt` as far as it comes, also where it throws Cancelled.
    void price(kernels::Context& context, std::vector<GenerateRequest> requests, Json* facts, Attempt& attempt) {
        try {
            const ModelOptions options = modelOptions(run_, context, run_.text("weights", "quantized"));
            Model model(context, source_, options, nullptr);
            attempt.load = model.loadReport();
            GenerateOptions generate = generateOptions(run_, options);
            generate.jumpEqualSteps = true;
            if (facts != nullptr) {
                addKvMetrics(*facts, model.config(), generate.cache);
            }
            Generator generator(model, nullptr, generate);
            generator.run(std::move(requests), attempt.report, {});
            attempt.roofline = decodeRoofline(model, attempt.report, generate);
            attempt.fits = true;
            attempt.reserved = context.memory().statistics().peakReserved;
        } catch (const base::OutOfMemory& error) {
            if (facts != nullptr) {
                (*facts)["out_of_memory"] = outOfMemoryJson(error);
            }
        }
    }

    /// What it reserves, or nothing when it does not fit.
    std::optional<std::uint64_t> probe(const GenerateRequest& request, std::int64_t copies) {
        base::throwIfStopped(run_.stop);
        const std::unique_ptr<kernels::Context> context = makePlanContext(run_, nullptr);
        budget_ = context->memory().budget();
        Attempt attempt;
        price(*context, std::vector<GenerateRequest>(static_cast<std::size_t>(copies), request), nullptr, attempt);
        return attempt.fits ? std::optional(attempt.reserved) : std::nullopt;
    }

    using Probe = std::function<std::optional<std::uint64_t>(std::int64_t)>;

    /// Largest n in [1, limit] that fits, given that what once did not fit never fits again. Memory is nearly linear in n,
    /// so the next try is where the line through the last two reaches the budget; every third halves the interval.
    std::int64_t largest(std::int64_t first, std::int64_t limit, const Probe& reserves) const {
        struct Point {
            std::int64_t n = 0;
            double bytes = 0;
        };
        std::vector<Point> points;
        std::int64_t good = 0;
        std::int64_t bad = limit + 1;
        std::int64_t next = first;
        for (int tries = 1; bad - good > 1; ++tries) {
            const auto bytes = reserves(next);
            if (bytes) {
                good = next;
                points.push_back({next, static_cast<double>(*bytes)});
            } else {
                bad = next;
            }
            next = bad > limit ? std::min(good * 2, limit) : good + (bad - good) / 2;
            if (tries % 3 != 0 && points.size() >= 2) {
                const Point& a = points[points.size() - 2];
                const Point& b = points.back();
                const double slope = (b.bytes - a.bytes) / static_cast<double>(b.n - a.n);
                const double room = static_cast<double>(budget_) - b.bytes;
                next = slope > 0 ? b.n + static_cast<std::int64_t>(std::min(room / slope, 1e9)) : next;
            }
            next = std::clamp(next, good + 1, std::max(bad - 1, good + 1));
        }
        return good;
    }

    std::uint64_t budget_ = 0;
    const Run& run_;
    const ModelSource& source_;
};

void planGenerate(const Run& run, const ModelSource& source) {
    GeneratePlanner planner(run, source);
    const bool hasPrompt = run.spec.contains("prompt") || run.spec.contains("chat") || run.spec.contains("tokens") ||
                           run.spec.contains("tokens_file") || run.spec.contains("prompt_length");
    if (hasPrompt) {
        planner.plan();
    }
    if (run.flag("max_context")) {
        planner.searchContext();
    }
    if (run.flag("max_batch")) {
        planner.searchBatch();
    }
    if (!hasPrompt) {
        // Only a search was asked for: price what it found.
        Json found = run.spec;
        found["prompt_length"] = std::max<std::int64_t>(run.metrics.value("max_context", std::int64_t{1}) - 1, 1);
        found["max_new_tokens"] = 1;
        GeneratePlanner(Run{found, run.sinks, run.stop, run.metrics}, source).plan();
    }
}

void planBatch(const Run& run, const ModelSource& source) {
    checkBatchFiles(run);
    const std::vector<TraceRow> rows = traceOf(run);
    const std::unique_ptr<kernels::Context> context = makePlanContext(run, run.sinks.trace);
    bool fits = true;
    runMeasured(run, *context, [&] {
        try {
            serveBatch(run, *context, source, rows);
        } catch (const base::OutOfMemory& error) {
            fits = false;
            run.metrics["out_of_memory"] = outOfMemoryJson(error);
        }
    });
    // Requests that are too long for the pool which the budget leaves do not fit; a pool that was asked for is no budget.
    const bool refuses = run.metrics.value("refused_requests", 0) > 0 && run.integer("kv_pages", 0) == 0;
    fits = fits && !refuses;
    run.metrics["fits"] = fits;
    if (!fits) {
        const std::unique_ptr<kernels::Context> unbounded = makePlanContext(run, nullptr, false);
        Json ignored = Json::object();
        serveBatch(Run{run.spec, {}, run.stop, ignored}, *unbounded, source, rows);
        addNeed(run.metrics, *context, *unbounded);
    }
    const auto steps = static_cast<double>(run.metrics.value("decode_steps", std::int64_t{0}));
    run.metrics["step_seconds_estimate"] = steps > 0 ? run.metrics.value("seconds", 0.0) / steps : 0.0;
}

/// Loads one variant; fills everything but memory. Returns whether it fits.
bool priceLoad(const Run& run, const ModelSource& source, kernels::Context& context, Json& out) {
    try {
        const Model model(context, source, modelOptions(run, context, out["weights"]), nullptr);
        const LoadReport& report = model.loadReport();
        out["seconds"] = report.seconds;
        out["bytes_read"] = report.bytesRead;
        out["resident_bytes"] = report.residentBytes;
        out["gb_per_second"] = report.seconds > 0 ? static_cast<double>(report.bytesRead) / report.seconds * 1e-9 : 0;
        return true;
    } catch (const base::OutOfMemory& error) {
        out["out_of_memory"] = outOfMemoryJson(error);
        return false;
    }
}

/// The plan as a whole reads as its last variant, which needs most.
void addLastVariant(Json& metrics, const Json& variant) {
    for (const char* key : {"peak_bytes", "peak_by_category", "max_by_category", "peak_reserved_bytes",
                            "host_peak_bytes", "budget_bytes", "short_by_bytes", "out_of_memory"}) {
        if (variant.contains(key)) {
            metrics[key] = variant[key];
        }
    }
}

void planLoad(const Run& run, const ModelSource& source) {
    const std::unique_ptr<kernels::Context> context = makePlanContext(run, run.sinks.trace);
    addContextMetrics(run, *context);
    const std::string weights = run.text("weights", "quantized");
    Json variants = Json::array();
    bool allFit = true;
    for (const std::string& variant :
         weights == "both" ? std::vector<std::string>{"quantized", "dequantized"} : std::vector<std::string>{weights}) {
        Json out = {{"weights", variant}, {"disk_bytes", diskBytes(source)}};
        const auto keep = [&] {
            addMemoryMetrics(out, *context);
            addLastVariant(run.metrics, out);
        };
        bool fits = false;
        try {
            fits = priceLoad(run, source, *context, out);
        } catch (const base::Cancelled&) {
            keep();
            variants.push_back(std::move(out));
            run.metrics["variants"] = std::move(variants);
            throw;
        }
        out["fits"] = fits;
        keep();
        if (!fits) {
            const std::unique_ptr<kernels::Context> unbounded = makePlanContext(run, nullptr, false);
            priceLoad(run, source, *unbounded, out);
            addNeed(out, *context, *unbounded);
            addLastVariant(run.metrics, out);
        }
        allFit = allFit && fits;
        variants.push_back(std::move(out));
    }
    measureAfterLoad(run, source, variants);
    run.metrics["variants"] = std::move(variants);
    run.metrics["fits"] = allFit;
}

} // namespace

Json planExperiment(const Json& experiment, const WorkloadSinks& sinks, base::StopToken stop, Json* partial) {
    Json local;
    Json& metrics = partial != nullptr ? *partial : local;
    metrics = Json::object();
    Json planned = experiment;
    if (planned.is_object()) {
        planned["plan"] = true;
    }
    const Json spec = validateExperiment(planned, "experiment");
    const Run run{spec, sinks, std::move(stop), metrics};
    const ModelSource source = openSource(run);
    if (spec["workload"] == "load") {
        planLoad(run, source);
    } else if (spec["workload"] == "generate") {
        planGenerate(run, source);
    } else if (spec["workload"] == "batch") {
        planBatch(run, source);
    } else {
        throw base::BadInput("experiment: plan: only generate, load and batch can be planned");
    }
    return metrics;
}

} // namespace vitrine::engine
