// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/common/plan_parts.h"
#include "engine/workload/common/rank_metrics.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "engine/workload/load/after_load.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 8> kLoadResults = {result::kRunSet,    result::kMemorySet, result::kLoadingSet,
                                                   result::kKernelSet, result::kPlanSet,   result::kRateSet,
                                                   result::kLoadSet,   result::kAnswerSet};

using Json = nlohmann::json;

constexpr std::array<std::string_view, 1> kLoadSharedKeys = {"repeat"};
constexpr std::array<std::string_view, 1> kLoadViews = {"load"};

/// Without a prompt it is a load and nothing more; with one it answers it after the load.
void checkLoad(const Experiment& experiment, const std::string& name) {
    checkInput(experiment, name, false);
}

/// Bytes of all tensors of the checkpoint; of a synthetic model those that it would have.
std::uint64_t diskBytes(const ModelSource& source) {
    if (source.checkpoint != nullptr) {
        return source.checkpoint->totalBytes();
    }
    std::uint64_t bytes = 0;
    for (const TensorSpec& tensor : expectedTensors(source.config)) {
        bytes += bytesOf(tensor);
    }
    return bytes;
}

/// What each rank read and holds; nothing of one alone.
void addRankLoads(Json& out, const Model& model) {
    if (model.ranks() == 1) {
        return;
    }
    Json rows = Json::array();
    std::uint64_t read = 0;
    for (int rank = 0; rank < model.ranks(); ++rank) {
        const LoadReport& report = model.rank(rank).weights().report();
        read += report.bytesRead;
        rows.push_back({{"rank", rank},
                        {"seconds", report.seconds},
                        {"bytes_read", report.bytesRead},
                        {"resident_bytes", report.residentBytes}});
    }
    out["bytes_read"] = read;
    out["ranks"] = std::move(rows);
}

Json loadVariant(const Run& run, const ModelSource& source, kernels::Context& context, const std::string& weights) {
    std::vector<double> seconds;
    Json out = {{"weights", weights}};
    for (std::int64_t i = 0; i < run.repeats(); ++i) {
        const Model model(context, source, modelOptions(run, context, weights), run.sinks.progress);
        const LoadReport& report = model.loadReport();
        seconds.push_back(report.seconds);
        out["bytes_read"] = report.bytesRead;
        out["resident_bytes"] = report.residentBytes;
        out["steady_bytes"] = context.memory().statistics().current;
        addRankLoads(out, model);
    }
    const double time = median(seconds);
    out["seconds"] = time;
    addRepeats(run.metrics, "variants." + weights + ".seconds", seconds);
    out["disk_bytes"] = diskBytes(source);
    out["gb_per_second"] = time > 0 ? out["bytes_read"].get<double>() / time * 1e-9 : 0;
    addMemoryMetrics(out, context);
    return out;
}

void runLoad(const Run& run) {
    Json& metrics = run.metrics;
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    metrics[result::kVariants.key] = Json::array();
    const std::string weights = run.spec.text("weights");
    runMeasured(run, *context, [&] {
        // Quantized first: memory statistics only grow, and it never needs more.
        for (const std::string& variant : weights == "both" ? std::vector<std::string>{"quantized", "dequantized"}
                                                            : std::vector<std::string>{weights}) {
            metrics[result::kVariants.key].push_back(loadVariant(run, source, *context, variant));
        }
    });
    measureAfterLoad(run, source, metrics[result::kVariants.key]);
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

void planLoad(const Run& run) {
    const ModelSource source = openSource(run);
    const RunDevices context = makePlanContext(run, run.sinks.trace);
    addContextMetrics(run, *context);
    const std::string weights = run.spec.text("weights");
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
            run.metrics[result::kVariants.key] = std::move(variants);
            throw;
        }
        out["fits"] = fits;
        keep();
        if (!fits) {
            const RunDevices unbounded = makePlanContext(run, nullptr, false);
            priceLoad(run, source, *unbounded, out);
            addNeed(out, *context, *unbounded);
            addLastVariant(run.metrics, out);
        }
        allFit = allFit && fits;
        variants.push_back(std::move(out));
    }
    measureAfterLoad(run, source, variants);
    run.metrics[result::kVariants.key] = std::move(variants);
    run.metrics[result::kFits.key] = allFit;
    addPlannedRanks(run, source.config, *context, 0, [&](const Run& quiet, kernels::Context& meta) {
        Json out = {{"weights", weights == "both" ? "dequantized" : weights}};
        priceLoad(quiet, source, meta, out);
        return 0.0;
    });
}

} // namespace

constinit const Workload kLoadWorkload = {
    .name = "load",
    .title = "Load",
    .optionSets =
        kModelOptions | kWeightsOptions | kDeviceOptions | kRankOptions | kRunOptions | kPromptOptions | kAnswerOptions,
    .optionKeys = kLoadSharedKeys,
    .check = checkLoad,
    .takesBothWeights = true,
    .run = runLoad,
    .plan = planLoad,
    .planHelp = "Memory and time of loading a model",
    .planExample = "vitrine plan load --model synthetic:gpt-oss-20b --weights both --json",
    .startsAfresh = true,
    .results = kLoadResults,
    .promptHint = "Prompt that both kinds of weights answer after the load, or nothing.",
    .formView = "run",
    .formPlace = 3,
    .views = kLoadViews,
};

} // namespace vitrine::engine
