// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// bench batch: the same trace under static and continuous batching.
//
// A scenario is TRACE-SLOTS: uniform (100 requests, prompts and answers of 16 to 256 tokens), long-tail (100 requests,
// answers from a Pareto distribution capped at 1,024) or many (1,000 requests, as uniform). TRACE-SLOTS-longest-first
// lets the longest answers begin first, in both modes; without it requests come in by arrival. Each trace is served
// once before it is timed, so that graphs are captured and kernels loaded. A continuous row names its gain over static
// and the most that the lengths allow: steps that static batches must take over steps that full slots must take. The
// ceiling of a row is the roofline of a decode step with a request in every slot; trace_limit counts in the steps at
// the trace's end, in which slots stand empty, and the prompts (batch_ceiling.h).

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/batch/batch.h"
#include "engine/workload/batch/batch_ceiling.h"
#include "engine/workload/bench/bench.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

struct Scenario {
    std::string name;
    TraceRecipe recipe;
    std::int32_t slots = 16;
    bool both = true; ///< static too
    bool longestFirst = false;
};

constexpr std::string_view kLongestFirst = "-longest-first";

std::uint64_t seedOf(const Run& run) {
    return run.seed();
}

std::vector<Scenario> scenariosOf(const Run& run) {
    const std::string text = run.spec.text("scenarios");
    std::vector<Scenario> out;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        const std::string name = text.substr(at, comma - at);
        Scenario scenario;
        scenario.name = name;
        scenario.recipe.seed = seedOf(run);
        scenario.longestFirst = name.ends_with(kLongestFirst);
        const std::string row = name.substr(0, name.size() - (scenario.longestFirst ? kLongestFirst.size() : 0));
        const std::size_t dash = row.rfind('-');
        const std::string kind = row.substr(0, dash);
        if (dash == std::string::npos || (kind != "uniform" && kind != "long-tail" && kind != "many")) {
            throw base::BadInput(fmt::format(
                "scenarios: \"{}\" is none; write them as uniform-16,long-tail-16,many-128,uniform-64-longest-first "
                "(trace, slots and the order if it is not fifo)",
                name));
        }
        const LengthRange slots = parseLengthRange(row.substr(dash + 1), "scenarios");
        if (slots.most > 4096) {
            throw base::BadInput("scenarios: at most 4096 slots");
        }
        scenario.slots = static_cast<std::int32_t>(slots.most);
        scenario.recipe.kind = kind == "many" ? "uniform" : kind;
        scenario.recipe.requests = kind == "many" ? 1000 : 100;
        scenario.recipe.answer.most = kind == "long-tail" ? 1024 : 256;
        scenario.both = kind != "many";
        out.push_back(scenario);
        at = comma + 1;
    }
    return out;
}

/// Steps of static batches over steps of slots that are always full.
double mostGain(const std::vector<TraceRow>& rows, std::int32_t slots) {
    std::int64_t staticSteps = 0;
    std::int64_t tokens = 0;
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        longest = std::max(longest, rows[i].maxNewTokens);
        tokens += rows[i].maxNewTokens;
        if ((i + 1) % static_cast<std::size_t>(slots) == 0 || i + 1 == rows.size()) {
            staticSteps += longest;
            longest = 0;
        }
    }
    std::int64_t most = 0;
    for (const TraceRow& row : rows) {
        most = std::max(most, row.maxNewTokens);
    }
    const std::int64_t fullSteps = std::max(most, (tokens + slots - 1) / slots);
    return static_cast<double>(staticSteps) / static_cast<double>(fullSteps);
}

class BatchBench {
public:
    BatchBench(const Run& run, const ModelSource& source, kernels::Context& context)
        : run_(run), source_(source), context_(context), copy_(measureCopy(context, seedOf(run))),
          multiply_(measureMatmul(context, seedOf(run))),
          options_(modelOptions(run, context, run.spec.text("weights"))),
          model_(context, source, options_, run.sinks.progress) {}

    Json ceilings() const { return Json::array({ceilingRow("copy", copy_), ceilingRow("matmul", multiply_)}); }

    void measure(const Scenario& scenario, Json& out) {
        const std::vector<TraceRow> rows = makeRequestTrace(scenario.recipe);
        std::vector<TraceRow> inOrder = rows;
        if (scenario.longestFirst) {
            std::stable_sort(inOrder.begin(), inOrder.end(),
                             [](const TraceRow& a, const TraceRow& b) { return a.maxNewTokens > b.maxNewTokens; });
        }
        const BatchCeiling ceiling =
            batchCeiling(model_, inOrder, scenario.slots, cacheDType(), {copy_.rate, multiply_.rate});
        double baseline = 0;
        for (const BatchMode mode : {BatchMode::Static, BatchMode::Continuous}) {
            if (mode == BatchMode::Static && !scenario.both) {
                continue;
            }
            const bool isStatic = mode == BatchMode::Static;
            const std::string name =
                fmt::format("{} slots, {} {}{}", scenario.slots, scenario.recipe.kind,
                            isStatic ? "static" : "continuous", scenario.longestFirst ? ", longest first" : "");
            if (run_.sinks.progress != nullptr) {
                run_.sinks.progress->progress("Measuring " + name, 0, 0);
            }
            Json metrics;
            // Twice: the first time captures graphs.
            for (int round = 0; round < (context_.can().replaysGraphs ? 2 : 1); ++round) {
                metrics = serve(rows, scenario, mode);
            }
            const double rate = metrics[result::kTokensPerSecond.key];
            Json row = benchRow(name, rate, "tokens/s", ceiling.fullSlots);
            row["trace_limit"] = ceiling.trace;
            row["least_steps"] = ceiling.steps;
            if (isStatic) {
                baseline = rate;
            } else if (baseline > 0) {
                row["gain"] = rate / baseline;
                row["gain_limit"] = mostGain(inOrder, scenario.slots);
            }
            for (const char* key : {"generated_tokens", "steps", "steps_launched_ahead", "slot_utilization",
                                    "prefill_seconds", "decode_seconds", "seconds", "preemptions"}) {
                row[key] = metrics[key];
            }
            for (const char* key : {"ttft", "tpot", "e2e"}) {
                for (const char* share : {"p50", "p90", "p95", "p99"}) {
                    row[fmt::format("{}_{}_seconds", key, share)] = metrics[key][share];
                }
            }
            out.push_back(std::move(row));
        }
    }

private:
    kernels::DType cacheDType() const { return generateOptions(run_, options_).cache.dtype; }

    Json serve(const std::vector<TraceRow>& rows, const Scenario& scenario, BatchMode mode) {
        BatchWork work = batchWork(run_, source_, rows, !context_.can().computesValues);
        BatchOptions options = batchOptions(run_, options_, work, source_.config);
        options.scheduler.mode = mode;
        options.scheduler.slots = scenario.slots;
        options.scheduler.order = scenario.longestFirst ? BatchOrder::LongestFirst : BatchOrder::Fifo;
        BatchEngine engine(model_, nullptr, options);
        engine.prepare();
        replayRequests(engine, context_, std::move(work.requests));
        Json metrics = Json::object();
        addBatchMetrics(metrics, engine);
        return metrics;
    }

    const Run& run_;
    const ModelSource& source_;
    kernels::Context& context_;
    Ceiling copy_, multiply_; // before the model takes the memory
    ModelOptions options_;
    Model model_;
};

} // namespace

void benchBatch(const Run& run) {
    const std::vector<Scenario> scenarios = scenariosOf(run);
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    addContextMetrics(run, *context);
    BatchBench bench(run, source, *context);
    Json rows = bench.ceilings();
    for (const Scenario& scenario : scenarios) {
        bench.measure(scenario, rows);
        run.metrics[result::kRows.key] = rows;
    }
    addMemoryMetrics(run.metrics, *context);
    addKernelMetrics(run.metrics, *context);
}

} // namespace vitrine::engine
