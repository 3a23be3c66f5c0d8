// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The plan of generate, and its searches. They use a fresh context for every try: nothing that a larger try left over
// may count.

#include "engine/workload/generate/generate_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "engine/planning/largest_fit.h"
#include "engine/workload/common/plan_parts.h"
#include "engine/workload/common/rank_metrics.h"
#include "engine/workload/common/run_adapter.h"
#include "engine/workload/common/run_speculation.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/roofline/decode_roofline.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLongestContext = std::int64_t{1} << 20;
constexpr std::int64_t kLargestBatch = 4096;
constexpr std::int64_t kMostSearchedTokens = std::int64_t{1} << 25; ///< prompt tokens of the largest try

/// One run of generate on Meta.
struct Attempt {
    bool fits = false;
    std::uint64_t reserved = 0; ///< most that was asked of the device
    GenerateReport report;
    LoadReport load;
    std::optional<DecodeRoofline> roofline;
};

/// New tokens of a request whose context is searched for. The first one needs no draft, and a draft leaves one more. So
/// a draft model's memory counts from the third on.
std::int64_t searchedNewTokens(const Experiment& experiment) {
    return speculates(experiment) ? 3 : 1;
}

class GeneratePlanner {
public:
    GeneratePlanner(const Run& run, const ModelSource& source) : run_(run), source_(source) {}

    /// Fills run.metrics with the plan itself.
    void plan() {
        const RunDevices context = makePlanContext(run_, run_.sinks.trace);
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
        metrics[result::kFits.key] = attempt.fits;
        if (!attempt.fits) {
            const RunDevices unbounded = makePlanContext(run_, nullptr, false);
            attempt = {};
            price(*unbounded, prompts.requests, nullptr, attempt);
            addNeed(metrics, *context, *unbounded);
            addDevices(metrics, source_.config, *context, *unbounded);
            addRanks(*unbounded, attempt, prompts);
        } else {
            addDevices(metrics, source_.config, *context, *context);
            addRanks(*context, attempt, prompts);
        }
        addAttempt(attempt, prompts);
        if (attempt.roofline) {
            addRooflineMetrics(run_, *context, *attempt.roofline);
        }
    }

    /// The longest context (prompt and new tokens of each request) that fits; 0: none.
    void searchContext() {
        const std::int64_t copies = run_.spec.maybeInteger("batch").value_or(1);
        const std::int64_t positions = source_.config.maxPositions > 0 ? source_.config.maxPositions : kLongestContext;
        const std::int64_t limit = std::clamp<std::int64_t>(kMostSearchedTokens / copies, 1, positions);
        const std::int64_t found = largestFit(
            limit, limit,
            [&](std::int64_t context) {
                GenerateRequest request;
                request.maxNewTokens = searchedNewTokens(run_.spec);
                request.prompt.assign(
                    static_cast<std::size_t>(std::max<std::int64_t>(context - request.maxNewTokens, 1)), 0);
                return probe(request, copies);
            },
            [this] { return budget_; });
        run_.metrics[result::kMaxContext.key] = found;
        run_.metrics[result::kMaxContextLimitedBy.key] = found < limit        ? "memory"
                                                         : limit == positions ? "model"
                                                                              : "search";
    }

    /// The largest number of copies of the prompt that fit together; 0: none.
    void searchBatch() {
        Experiment alone = run_.spec;
        alone.set("batch", std::int64_t{1});
        const Prompts prompts = makePrompts(Run{alone, run_.sinks, run_.stop, run_.metrics}, source_, true);
        const auto length = static_cast<std::int64_t>(prompts.requests.front().prompt.size());
        const std::int64_t limit = std::clamp<std::int64_t>(kMostSearchedTokens / length, 1, kLargestBatch);
        const std::int64_t found = largestFit(
            1, limit, [&](std::int64_t copies) { return probe(prompts.requests.front(), copies); },
            [this] { return budget_; });
        run_.metrics[result::kMaxBatch.key] = found;
        run_.metrics[result::kMaxBatchLimitedBy.key] = found == limit ? "search" : "memory";
    }

private:
    /// `leader` has been priced as `attempt`.
    void addRanks(kernels::Context& leader, const Attempt& attempt, const Prompts& prompts) {
        addPlannedRanks(run_, source_.config, leader, attempt.load.seconds, [&](const Run&, kernels::Context& meta) {
            Attempt ofRank;
            price(meta, prompts.requests, nullptr, ofRank);
            return ofRank.load.seconds;
        });
    }

    /// Of one that was cancelled: as far as it came.
    void addAttempt(const Attempt& attempt, const Prompts& prompts) {
        Json& metrics = run_.metrics;
        metrics[result::kLoadSeconds.key] = attempt.load.seconds;
        metrics[result::kResidentBytes.key] = attempt.load.residentBytes;
        std::int64_t promptTokens = 0;
        for (const GenerateRequest& request : prompts.requests) {
            promptTokens = std::max(promptTokens, static_cast<std::int64_t>(request.prompt.size()));
        }
        metrics[result::kPromptTokens.key] = promptTokens;
        metrics[result::kBatch.key] = prompts.requests.size();
        metrics[result::kMaxNewTokens.key] = run_.spec.integer("max_new_tokens");
        metrics[result::kPrefillSeconds.key] = attempt.report.prefillSeconds;
        metrics[result::kDecodeSeconds.key] = attempt.report.decodeSeconds;
        metrics[result::kDecodeTokensPerSecond.key] =
            attempt.report.decodeSeconds > 0
                ? static_cast<double>(attempt.report.decodedTokens) / attempt.report.decodeSeconds
                : 0.0;
        metrics[result::kStepSecondsEstimate.key] = attempt.report.stepSeconds;
        metrics[result::kKvBytes.key] = attempt.report.kvBytes;
        metrics[result::kKvPageBytes.key] = attempt.report.kvPageBytes;
        Json groups = Json::object();
        for (const auto& [name, bytes] : attempt.report.kvGroupBytes) {
            groups[name] = bytes;
        }
        metrics[result::kKvPageBytesByGroup.key] = std::move(groups);
    }

    /// Fills `attempt` as far as it comes, also where it throws Cancelled.
    void price(kernels::Context& context, std::vector<GenerateRequest> requests, Json* details, Attempt& attempt) {
        try {
            const ModelOptions options = modelOptions(run_, context, run_.spec.text("weights"));
            Model model(context, source_, options, nullptr);
            attempt.load = model.loadReport();
            const std::unique_ptr<Adapter> adapter = loadAdapter(run_, model);
            GenerateOptions generate = generateOptions(run_, options);
            generate.jumpEqualSteps = true;
            if (details != nullptr) {
                addKvMetrics(*details, model.config(), generate.cache);
            }
            const RunSpeculation speculation(run_, source_, context, generate.cache, std::nullopt);
            generate.speculation = speculation.speculation();
            context.expectCopies(requests.size() > 1 && run_.spec.real("temperature") <= 0);
            Generator generator(model, nullptr, generate);
            generator.run(std::move(requests), attempt.report, {});
            if (details != nullptr) {
                speculation.addMetrics(*details, attempt.report.speculation);
            }
            if (!generate.speculation.on()) {
                attempt.roofline = decodeRoofline(model, attempt.report, generate);
            }
            attempt.fits = true;
            attempt.reserved = context.memory().statistics().peakReserved;
        } catch (const base::OutOfMemory& error) {
            if (details != nullptr) {
                (*details)["out_of_memory"] = outOfMemoryJson(error);
            }
        }
    }

    /// What it reserves, or nothing when it does not fit.
    std::optional<std::uint64_t> probe(const GenerateRequest& request, std::int64_t copies) {
        base::throwIfStopped(run_.stop);
        const RunDevices context = makePlanContext(run_, nullptr);
        budget_ = context->memory().budget();
        Attempt attempt;
        price(*context, std::vector<GenerateRequest>(static_cast<std::size_t>(copies), request), nullptr, attempt);
        return attempt.fits ? std::optional(attempt.reserved) : std::nullopt;
    }

    std::uint64_t budget_ = 0;
    const Run& run_;
    const ModelSource& source_;
};

} // namespace

void planGenerate(const Run& run) {
    const ModelSource source = openSource(run);
    GeneratePlanner planner(run, source);
    const bool hasPrompt = hasInput(run.spec);
    if (hasPrompt) {
        planner.plan();
    }
    if (run.spec.flag("max_context")) {
        planner.searchContext();
    }
    if (run.spec.flag("max_batch")) {
        planner.searchBatch();
    }
    if (!hasPrompt) {
        // Only a search was asked for: price what it found.
        Experiment found = run.spec;
        const std::int64_t newTokens = searchedNewTokens(run.spec);
        found.set("prompt_length",
                  std::max<std::int64_t>(run.metrics.value(result::kMaxContext.key, std::int64_t{1}) - newTokens, 1));
        found.set("max_new_tokens", newTokens);
        GeneratePlanner(Run{found, run.sinks, run.stop, run.metrics}, source).plan();
    }
}

} // namespace vitrine::engine
