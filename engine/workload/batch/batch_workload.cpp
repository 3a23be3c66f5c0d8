// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <array>
#include <fmt/format.h>
#include <string_view>

#include "base/output_file.h"
#include "engine/workload/batch/batch.h"
#include "engine/workload/batch/batch_answers.h"
#include "engine/workload/batch/expert_ranks.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/run_speculation.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 10> kBatchResults = {
    result::kRunSet,  result::kMemorySet, result::kLoadingSet, result::kKernelSet,      result::kPlanSet,
    result::kRateSet, result::kAnswerSet, result::kKvSet,      result::kSpeculationSet, result::kBatchSet};

/// The first line, when it is an object that has this key.
bool beginsWithKey(std::string_view head, std::string_view key) {
    const std::string_view line = head.substr(0, head.find('\n'));
    return line.starts_with('{') && line.find(key) != std::string_view::npos;
}

bool isTrace(std::string_view head) {
    return beginsWithKey(head, "\"arrival\":");
}

bool isAnswers(std::string_view head) {
    return beginsWithKey(head, "\"ids\":");
}

constexpr auto kBatchSharedKeys = withSpeculationKeys(std::to_array<std::string_view>({"adapter", "kv_dtype"}));
constexpr std::array<std::string_view, 2> kBatchViews = {"kv-cache", "batching"};

constexpr base::OutputKind kTraceOutput{"a trace of requests", "", isTrace};
constexpr base::OutputKind kAnswersOutput{"a file of answers", "", isAnswers};
constexpr std::array<WorkloadOutput, 2> kBatchOutputs{
    {{"save_trace", &kTraceOutput, true}, {"outputs", &kAnswersOutput, true}}};

/// Columns as in option_table.cpp.
constexpr std::array kBatchOptions = {
    OptionSpec{"trace", OptionType::Text, "", "", 0, 0, "", "", "Requests",
               "File of requests, one JSON object on each line, or a made one: fixed, uniform, poisson, long-tail", 0,
               false, true},
    OptionSpec{"requests", OptionType::Integer, "100", "", 1, 1e6, "", "", "Requests", "How many a made trace has"},
    OptionSpec{"prompt_tokens", OptionType::Text, "16-256", "", 0, 0, "", "tokens", "Requests",
               "Prompt lengths of a made trace"},
    OptionSpec{"new_tokens", OptionType::Text, "16-256", "", 0, 0, "", "tokens", "Requests",
               "Answer lengths of a made trace; long-tail: from the shortest to the cap"},
    OptionSpec{"rate", OptionType::Real, "0", "", 0, 1e6, "", "1/s", "Requests",
               "Requests that arrive each second in a made trace; 0: all at the start"},
    OptionSpec{"save_trace", OptionType::Path, "", "", 0, 0, "", "", "Requests", "Write the trace to this file"},
    OptionSpec{"outputs", OptionType::Path, "", "", 0, 0, "", "", "Requests",
               "Write the answers to this file, one {\"id\", \"ids\"} on each line"},
    OptionSpec{"expert_ranks", OptionType::Integer, "1", "", 1, 4096, "", "devices", "Device",
               "Plan one of so many devices among which the experts are divided, each with requests of its own"},
    OptionSpec{"mode", OptionType::Choice, "continuous", "", 0, 0, "static|continuous", "", "Batching",
               "static: full batches, padded, until the longest answer ends; continuous: a slot is free when its "
               "request ends"},
};

void runBatch(const Run& run) {
    const std::vector<TraceRow> rows = traceOf(run);
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    runMeasured(run, *context, [&] { serveBatch(run, *context, source, rows); });
}

void checkBatch(const Experiment& experiment, const std::string& name) {
    requireOption(experiment, name, "trace", "name a file of requests, or one of fixed, uniform, poisson, long-tail");
    checkSpeculation(experiment, name);
    checkExpertRanks(experiment, name);
}

/// Batches of one model differ by these.
std::string listName(const Experiment& experiment) {
    return fmt::format("{}, {} slots, {}", experiment.text("mode"), experiment.integer("slots"), modelName(experiment));
}

} // namespace

constinit const Workload kBatchWorkload = {
    .name = "batch",
    .title = "Batch",
    .optionSets = kModelOptions | kWeightsOptions | kDeviceOptions | kRankOptions | kRunOptions | kAnswerOptions |
                  kTextOptions | kBatchingOptions,
    .optionKeys = kBatchSharedKeys,
    .ownOptions = kBatchOptions,
    .outputs = kBatchOutputs,
    .ownOptionsBefore = "slots",
    .check = checkBatch,
    .run = runBatch,
    .plan = planBatch,
    .planHelp = "Memory and time of serving a trace of requests",
    .planExample = "vitrine plan batch --model synthetic:gpt-oss-20b --trace uniform --slots 16 --json",
    .manyAnswers = true,
    .results = kBatchResults,
    .runName = listName,
    .formView = "run",
    .formPlace = 2,
    .views = kBatchViews,
};

} // namespace vitrine::engine
