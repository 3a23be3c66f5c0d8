// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/checkpoint/token_rows.h"
#include "engine/workload/common/logit_steps.h"
#include "engine/workload/common/run_adapter.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 6> kLogitsResults = {result::kRunSet,    result::kMemorySet, result::kLoadingSet,
                                                     result::kKernelSet, result::kRateSet,   result::kFileSet};

using Json = nlohmann::json;
constexpr std::array<std::string_view, 6> kLogitsSharedKeys = {"adapter",       "tokens_file", "kv_dtype",
                                                               "prefill_chunk", "output",      "repeat"};

constexpr std::array<WorkloadOutput, 1> kLogitsOutputs{{{"output", &kLogitsOutput}}};

using TokenRows = std::vector<std::vector<std::int32_t>>;

/// A piece of a row in one step.
struct Piece {
    std::size_t row = 0;
    std::int64_t begin = 0, count = 0;
    bool last = false; ///< of its row
};

/// Whole rows together while they fit a step, long rows in pieces: so logits come in the order of the tensor.
std::vector<std::vector<Piece>> stepsOf(const TokenRows& rows, std::int64_t chunk) {
    std::vector<std::vector<Piece>> steps;
    std::int64_t room = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto length = static_cast<std::int64_t>(rows[row].size());
        for (std::int64_t begin = 0; begin < length; begin += chunk) {
            const std::int64_t count = std::min(chunk, length - begin);
            if (steps.empty() || begin > 0 || count > room) {
                steps.emplace_back();
                room = chunk;
            }
            steps.back().push_back({row, begin, count, begin + count == length});
            room -= count;
        }
    }
    return steps;
}

StepSequence sequenceOf(const TokenRows& rows, const Piece& piece, int sequence) {
    const std::vector<std::int32_t>& row = rows[piece.row];
    return {sequence,
            {row.data() + piece.begin, static_cast<std::size_t>(piece.count)},
            true,
            static_cast<std::int64_t>(row.size())};
}

/// Compiles what all steps need: one of each shape, as many sequences at a time as it has.
void prepareSteps(Model& model, const TokenRows& rows, const std::vector<std::vector<Piece>>& steps,
                  const KvCacheOptions& cache, base::ProgressSink* progress) {
    std::vector<StepBatch> batches;
    std::set<std::vector<std::int64_t>> known;
    for (const std::vector<Piece>& step : steps) {
        std::vector<std::int64_t> shape;
        StepBatch batch;
        batch.name = "prefill";
        batch.logits = StepLogits::All;
        for (const Piece& piece : step) {
            shape.push_back(piece.count);
            batch.sequences.push_back(sequenceOf(rows, piece, static_cast<int>(batch.sequences.size())));
        }
        if (known.insert(std::move(shape)).second) {
            batches.push_back(std::move(batch));
        }
    }
    model.prepare(batches, cache, progress);
}

/// Runs every row through the model; logits go straight to the file.
void runSteps(Model& model, const TokenRows& rows, const std::vector<std::vector<Piece>>& steps, KvCache& cache,
              SafetensorsWriter& writer) {
    std::map<std::size_t, int> open; // sequences of rows that are not through
    for (std::size_t index = 0; index < steps.size(); ++index) {
        StepBatch batch;
        batch.name = "prefill";
        batch.index = static_cast<std::int32_t>(index);
        std::int64_t tokens = 0;
        for (const Piece& piece : steps[index]) {
            const auto [sequence, isNew] = open.try_emplace(piece.row, -1);
            if (isNew) {
                sequence->second = cache.addSequence();
            }
            batch.sequences.push_back(sequenceOf(rows, piece, sequence->second));
            tokens += piece.count;
        }
        std::vector<float> logits(static_cast<std::size_t>(tokens * model.config().vocab));
        batch.logits = StepLogits::All;
        batch.logitsOut = logits.data();
        model.step(batch, cache);
        writer.write(logits.data(), logits.size() * sizeof(float));
        for (const Piece& piece : steps[index]) {
            if (piece.last) {
                cache.removeSequence(open.at(piece.row));
                open.erase(piece.row);
            }
        }
    }
}

void runLogits(const Run& run) {
    Json& metrics = run.metrics;
    const TokenRows rows = readTokenRows(run.spec.text("tokens_file"));
    const ModelSource source = openSource(run);
    const std::string origin = run.spec.text("tokens_file") + ": input_ids";
    checkTokenIds(rows, source.config.vocab, origin);
    checkContext(rows, source.config, origin);
    const RunDevices context = makeContext(run);
    if (!context->can().computesValues) {
        throw base::Unsupported("backend: meta computes no values, so there are no logits; use cpu");
    }
    runMeasured(run, *context, [&] {
        const ModelOptions options = modelOptions(run, *context, run.spec.text("weights"));
        Model model(*context, source, options, run.sinks.progress);
        const std::unique_ptr<Adapter> adapter = loadAdapter(run, model);
        KvCacheOptions cacheOptions = generateOptions(run, options).cache;
        const std::vector<std::vector<Piece>> steps =
            stepsOf(rows, logitStepTokens(context->traits(), run.spec.integer("prefill_chunk"), source.config));
        prepareSteps(model, rows, steps, cacheOptions, run.sinks.progress);
        const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(rows.size()),
                                                 static_cast<std::int64_t>(rows.front().size()), source.config.vocab};
        TensorSpec spec{"logits", kernels::DType::F32, shape};
        std::vector<double> seconds;
        for (std::int64_t i = 0; i < run.repeats(); ++i) {
            const auto writer = SafetensorsWriter::create(run.spec.text("output"), {spec}, madeBy(kLogitsOutput));
            KvCache cache(*context, model.config(), cacheOptions);
            const base::TimeNs begin = context->clock().now();
            const kernels::TraceScope phase(context->tracer(), base::ScopeKind::Phase, "prefill");
            runSteps(model, rows, steps, cache, *writer);
            seconds.push_back(static_cast<double>(context->clock().now() - begin) * 1e-9);
            writer->finish();
        }
        metrics[result::kShape.key] = shape;
        metrics[result::kSeconds.key] = median(seconds);
        addRepeats(metrics, std::string(result::kSeconds.key), seconds);
        addLoadMetrics(metrics, model.loadReport());
        metrics[result::kOutput.key] = run.spec.text("output");
    });
}

void checkLogits(const Experiment& experiment, const std::string& name) {
    requireOption(experiment, name, "tokens_file", "name a safetensors file with input_ids");
    requireOption(experiment, name, "output", "name the file that the logits go to");
}

} // namespace

constinit const Workload kLogitsWorkload = {
    .name = "logits",
    .title = "Logits",
    .optionSets = kModelOptions | kWeightsOptions | kDeviceOptions | kRankOptions | kRunOptions,
    .optionKeys = kLogitsSharedKeys,
    .outputs = kLogitsOutputs,
    .check = checkLogits,
    .run = runLogits,
    .results = kLogitsResults,
};

} // namespace vitrine::engine
