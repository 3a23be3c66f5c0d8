// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/run_setup.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using TokenRows = std::vector<std::vector<std::int32_t>>;

/// Runs every row through the model, whole rows together while they fit a step, long rows in pieces; logits come in the
/// order of the tensor and go straight to the file.
class LogitsPass {
public:
    LogitsPass(Model& model, KvCache& cache, std::int64_t chunk, SafetensorsWriter& writer)
        : model_(model), cache_(cache), chunk_(chunk), writer_(writer) {}

    void run(const TokenRows& rows) {
        for (const auto& row : rows) {
            const auto length = static_cast<std::int64_t>(row.size());
            if (tokens_ + length > chunk_) {
                flush();
            }
            const int sequence = cache_.addSequence();
            open_.push_back(sequence);
            for (std::int64_t begin = 0; begin < length; begin += chunk_) {
                const std::int64_t count = std::min(chunk_, length - begin);
                batch_.push_back({sequence, {row.data() + begin, static_cast<std::size_t>(count)}, true, length});
                tokens_ += count;
                if (begin + count < length) {
                    step();
                }
            }
        }
        flush();
    }

private:
    void step() {
        if (batch_.empty()) {
            return;
        }
        std::vector<float> logits(static_cast<std::size_t>(tokens_ * model_.config().vocab));
        StepBatch batch;
        batch.name = "prefill";
        batch.index = index_++;
        batch.sequences = batch_;
        batch.logits = StepLogits::All;
        batch.logitsOut = logits.data();
        model_.step(batch, cache_);
        writer_.write(logits.data(), logits.size() * sizeof(float));
        batch_.clear();
        tokens_ = 0;
    }
    void flush() {
        step();
        for (const int sequence : open_) {
            cache_.removeSequence(sequence);
        }
        open_.clear();
    }

    Model& model_;
    KvCache& cache_;
    std::int64_t chunk_;
    SafetensorsWriter& writer_;
    std::vector<StepSequence> batch_;
    std::vector<int> open_;
    std::int64_t tokens_ = 0;
    std::int32_t index_ = 0;
};

/// Tokens of one step: every one of them gets a row of logits, so these are bounded too.
std::int64_t stepTokens(const Run& run, const kernels::Context& context, const ModelConfig& config) {
    constexpr std::int64_t kLogitsBytes = std::int64_t{256} << 20;
    const auto rowBytes = config.vocab * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t most = std::max<std::int64_t>(kLogitsBytes / rowBytes, 1);
    return std::min(most, prefillChunk(context.traits(), run.integer("prefill_chunk", 0)));
}

} // namespace

void runLogits(const Run& run) {
    Json& metrics = run.metrics;
    const TokenRows rows = readTokenRows(run.text("tokens_file"));
    const ModelSource source = openSource(run);
    checkTokenIds(rows, source.config.vocab, run.text("tokens_file") + ": input_ids");
    const std::unique_ptr<kernels::Context> context = makeContext(run);
    if (context->isMeta()) {
        throw base::Unsupported("backend: meta computes no values, so there are no logits; use cpu");
    }
    addContextMetrics(run, *context);
    try {
        const ModelOptions options = modelOptions(run, *context, run.text("weights", "quantized"));
        Model model(*context, source, options, run.sinks.progress);
        KvCacheOptions cacheOptions = generateOptions(run, options).cache;
        const std::int64_t chunk = stepTokens(run, *context, source.config);
        const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(rows.size()),
                                                 static_cast<std::int64_t>(rows.front().size()), source.config.vocab};
        TensorSpec spec{"logits", kernels::DType::F32, shape};
        std::vector<double> seconds;
        for (std::int64_t i = 0; i < run.integer("repeat", 1); ++i) {
            const auto writer = SafetensorsWriter::create(run.text("output"), {spec});
            KvCache cache(*context, source.config, cacheOptions);
            const base::TimeNs begin = context->clock().now();
            const kernels::TraceScope phase(context->tracer(), base::ScopeKind::Phase, "prefill");
            LogitsPass(model, cache, chunk, *writer).run(rows);
            seconds.push_back(static_cast<double>(context->clock().now() - begin) * 1e-9);
            writer->finish();
        }
        metrics["shape"] = shape;
        metrics["seconds"] = median(seconds);
        addLoadMetrics(metrics, model.loadReport());
        metrics["output"] = run.text("output");
    } catch (...) {
        addMemoryMetrics(metrics, *context);
        addKernelMetrics(metrics, *context);
        throw;
    }
    addMemoryMetrics(metrics, *context);
    addKernelMetrics(metrics, *context);
}

} // namespace vitrine::engine
