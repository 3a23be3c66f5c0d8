// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// bench gpt-oss: decode and prefill rates of a model beside what the device's measured copy and matmul rates allow.
//
// Decode: each sequence starts after a KV cache of random keys and values (no prefill), so that the middle of the
// timed steps has the context that the row names. The rate is that of the median step. The floor of a step is the
// larger of its bytes at the copy rate (weights that every token reads, the experts really hit, the head, keys and
// values; all read once) and its FLOPs at the matmul rate. A second run with the same seed counts the experts: counting
// slows steps down. Prefill: the time until the first token; FLOPs of every token, the head for the last one only.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/bench/bench.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/roofline/decode_roofline.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kWarmSteps = 16;
constexpr std::int64_t kTimedSteps = 64;
constexpr std::int64_t kCountedSteps = 16;
constexpr std::int64_t kPrefills = 3; ///< timed ones, after one that is not

class GptOssBench {
public:
    GptOssBench(const Run& run, const ModelSource& source, kernels::Context& context)
        : run_(run), context_(context), seed_(run.seed()) {
        copy_ = measureCopy(context, seed_);
        multiply_ = measureMatmul(context, seed_);
        rows_.push_back(ceilingRow("copy", copy_));
        rows_.push_back(ceilingRow("matmul", multiply_));
        model_.emplace(context, source, modelOptions(run, context, run.spec.text("weights")), run.sinks.progress);
        options_ = generateOptions(run, model_->options());
        bytes_ = model_->weightBytes();
    }

    void decodeRows(const std::vector<std::int64_t>& batches, const std::vector<std::int64_t>& contexts) {
        for (const std::int64_t context : contexts) {
            for (const std::int64_t batch : batches) {
                addRow(fmt::format("decode batch {} context {}", batch, context),
                       [&](const std::string& name) { return decodeRow(name, batch, context); });
            }
        }
    }

    void prefillRows(const std::vector<std::int64_t>& prompts) {
        for (const std::int64_t tokens : prompts) {
            addRow(fmt::format("prefill {}", tokens),
                   [&](const std::string& name) { return prefillRow(name, tokens); });
        }
    }

    const Model& model() const { return *model_; }
    Json takeRows() { return std::move(rows_); }

private:
    /// One that does not fit is a row without a value: the others are still worth having.
    template <class Measure> void addRow(const std::string& name, const Measure& measure) {
        context_.throwIfStopped();
        if (run_.sinks.progress != nullptr) {
            run_.sinks.progress->progress("Measuring " + name, 0, 0);
        }
        try {
            rows_.push_back(measure(name));
        } catch (const base::OutOfMemory& error) {
            rows_.push_back({{"name", name},
                             {"value", nullptr},
                             {"unit", "tokens/s"},
                             {"ceiling", nullptr},
                             {"ratio", nullptr},
                             {"what", "out of memory"},
                             {"error", error.message()}});
        }
    }

    GenerateOptions optionsAfter(std::int64_t prior) const {
        GenerateOptions options = options_;
        options.priorTokens = prior;
        options.priorSeed = seed_;
        return options;
    }

    double stepSeconds(std::int64_t batch, std::int64_t prior) {
        std::vector<base::TimeNs> times;
        GenerateReport report;
        Generator(*model_, nullptr, optionsAfter(prior))
            .run(someRequests(model_->config(), batch, 1, kWarmSteps + kTimedSteps + 1), report,
                 [&](const GeneratedToken& token) {
                     if (token.request == 0) {
                         times.push_back(token.time);
                     }
                 });
        std::vector<double> seconds;
        for (std::size_t i = kWarmSteps + 1; i < times.size(); ++i) {
            seconds.push_back(static_cast<double>(times[i] - times[i - 1]) * 1e-9);
        }
        return median(seconds);
    }

    /// Different experts of a step, summed over layers.
    double expertsHit(std::int64_t batch, std::int64_t prior) {
        const ModelConfig& config = model_->config();
        if (bytes_.moeLayers == 0) {
            return 0;
        }
        if (!context_.can().computesValues) {
            return static_cast<double>(bytes_.moeLayers) *
                   expectedExperts(config.experts, config.expertsPerToken, static_cast<double>(batch));
        }
        ExpertUse use;
        GenerateOptions options = optionsAfter(prior);
        options.expertUse = &use;
        GenerateReport report;
        Generator(*model_, nullptr, options)
            .run(someRequests(model_->config(), batch, 1, kCountedSteps + 1), report, {});
        return static_cast<double>(use.experts) / static_cast<double>(std::max<std::int64_t>(use.steps, 1));
    }

    Json decodeRow(const std::string& name, std::int64_t batch, std::int64_t context) {
        const std::int64_t prior = std::max<std::int64_t>(0, context - kWarmSteps - kTimedSteps / 2);
        const double seconds = stepSeconds(batch, prior);
        const double hit = expertsHit(batch, prior);
        const auto sequences = static_cast<double>(batch);
        const double kv = sequences * static_cast<double>(model_->config().kvBytes(context, options_.cache.dtype));
        const DecodeBytes bytes = decodeBytes(*model_, sequences, hit, kv);
        const double byBytes = bytes.total() / copy_.rate;
        const double byFlops = sequences * stepFlops(model_->config(), context - 1, 1) / multiply_.rate;
        Json row = benchRow(name, sequences / seconds, "tokens/s", sequences / std::max(byBytes, byFlops));
        row["what"] = byBytes >= byFlops ? "bytes" : "FLOPs";
        row["step_seconds"] = seconds;
        if (bytes_.moeLayers > 0) {
            row["experts_hit"] = hit / static_cast<double>(bytes_.moeLayers);
        }
        row["experts_bytes"] = std::llround(bytes.experts);
        row["attention_bytes"] = std::llround(bytes.shared);
        row["head_bytes"] = std::llround(bytes.head);
        row["kv_bytes"] = std::llround(bytes.kv);
        return row;
    }

    Json prefillRow(const std::string& name, std::int64_t tokens) {
        std::vector<double> times;
        for (std::int64_t i = 0; i <= std::max(kPrefills, run_.repeats()); ++i) {
            GenerateReport report;
            Generator(*model_, nullptr, options_).run(someRequests(model_->config(), 1, tokens, 1), report, {});
            if (i > 0) {
                times.push_back(report.prefillSeconds);
            }
        }
        const double seconds = median(times);
        const ModelConfig& config = model_->config();
        const double flops = stepFlops(config, 0, tokens);
        const double experts = bytes_.moeLayers == 0 ? 0
                                                     : static_cast<double>(bytes_.moeLayers) *
                                                           expectedExperts(config.experts, config.expertsPerToken,
                                                                           static_cast<double>(tokens));
        const double bytes = static_cast<double>(bytes_.shared + bytes_.head) +
                             static_cast<double>(bytes_.embeddingRow) * static_cast<double>(tokens) +
                             experts * static_cast<double>(bytes_.expert);
        const double byFlops = flops / multiply_.rate;
        const double byBytes = bytes / copy_.rate;
        const auto count = static_cast<double>(tokens);
        Json row = benchRow(name, count / seconds, "tokens/s", count / std::max(byFlops, byBytes));
        row["what"] = byFlops >= byBytes ? "FLOPs" : "bytes";
        row["step_seconds"] = seconds;
        row["tflop"] = flops * 1e-12;
        row["tflop_per_second"] = flops / seconds * 1e-12;
        return row;
    }

    const Run& run_;
    kernels::Context& context_;
    std::uint64_t seed_;
    Ceiling copy_, multiply_;
    std::optional<Model> model_;
    GenerateOptions options_;
    WeightBytes bytes_;
    Json rows_ = Json::array();
};

} // namespace

void benchGptOss(const Run& run) {
    Json& metrics = run.metrics;
    // Wrong lists are errors before anything is loaded.
    const std::vector<std::int64_t> batches = numbersOption(run, "batches");
    const std::vector<std::int64_t> contexts = numbersOption(run, "contexts");
    const std::vector<std::int64_t> prompts = numbersOption(run, "prompt_lengths");
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    addContextMetrics(run, *context);
    metrics[result::kDecodeContexts.key] = "random keys and values, no prefill";
    GptOssBench bench(run, source, *context);
    metrics[result::kLoadSeconds.key] = bench.model().loadReport().seconds;
    metrics[result::kResidentBytes.key] = bench.model().loadReport().residentBytes;
    bench.decodeRows(batches, contexts);
    bench.prefillRows(prompts);
    Json rows = bench.takeRows();
    constexpr double kGib = 1.0 / (std::uint64_t{1} << 30);
    const auto gib = [&](std::uint64_t bytes) { return static_cast<double>(bytes) * kGib; };
    rows.push_back(benchRow("weights", gib(bench.model().loadReport().residentBytes), "GiB"));
    addMemoryMetrics(metrics, *context);
    addKernelMetrics(metrics, *context);
    rows.push_back(
        benchRow("memory peak", gib(context->memory().statistics().peak), "GiB", gib(context->memory().budget())));
    metrics[result::kRows.key] = std::move(rows);
}

} // namespace vitrine::engine
