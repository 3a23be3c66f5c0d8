// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The named benchmarks; cpu-decode: how close decoding comes to what reading its bytes would allow.

#include "engine/workload/bench/bench.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "kernels/cpu/read_bandwidth.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 8> kBenchResults = {result::kRunSet,      result::kMemorySet, result::kLoadingSet,
                                                    result::kKernelSet,   result::kRateSet,   result::kFileSet,
                                                    result::kTrainingSet, result::kBenchSet};

using Json = nlohmann::json;

constexpr std::array<std::string_view, 2> kBenchSharedKeys = {"kv_dtype", "repeat"};

/// Columns as in option_table.cpp.
constexpr std::array kBenchOptions = {
    OptionSpec{
        "bench", OptionType::Choice, "cpu-decode", "", 0, 0,
        "cpu-decode|gpt-oss|batch|load|profiling|attention|pack|copy|matmul", "", "Run",
        "Which benchmark: decoding on the CPU; decode and prefill of a model beside their rooflines; static and "
        "continuous batching; loading a folder; what profiling costs; attention programs forward and backward; packing "
        "weights as quantization-aware training does after each update; or one ceiling"},
    OptionSpec{"batches", OptionType::Text, "1,4,16,64", "", 0, 0, "", "", "Run",
               "Batch sizes of the decode rows of bench gpt-oss; none: no such rows"},
    OptionSpec{"contexts", OptionType::Text, "1024,8192", "", 0, 0, "", "tokens", "Run",
               "Tokens in the KV cache for the decode rows of bench gpt-oss"},
    OptionSpec{"prompt_lengths", OptionType::Text, "512,2048,8192", "", 0, 0, "", "tokens", "Run",
               "Prompt lengths of the prefill rows of bench gpt-oss; none: no such rows"},
    OptionSpec{"scenarios", OptionType::Text, "uniform-16,uniform-32,long-tail-16,uniform-64,many-128", "", 0, 0, "",
               "", "Run",
               "Rows of bench batch: trace and slots, and -longest-first for that order; many is 1,000 requests"},
};

constexpr std::int64_t kPromptTokens = 8;
constexpr std::int64_t kNewTokens = 24;
constexpr std::int64_t kMostBenchTokens = std::int64_t{1} << 24;

} // namespace

Json benchRow(const std::string& name, double value, const std::string& unit, double ceiling) {
    const bool bounded = ceiling > 0;
    return {{"name", name},
            {"value", value},
            {"unit", unit},
            {"ceiling", bounded ? Json(ceiling) : Json()},
            {"ratio", bounded ? Json(value / ceiling) : Json()}};
}

std::vector<std::int64_t> numbersOption(const Run& run, const char* key) {
    const std::string text = run.spec.text(key);
    std::vector<std::int64_t> out;
    if (text.empty() || text == "none") {
        return out;
    }
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + comma, value);
        if (error != std::errc() || end != text.data() + comma || value < 1 || value > kMostBenchTokens) {
            throw base::BadInput(fmt::format("{}: \"{}\" is not a list of numbers from 1 to {}; write it as 1,4,16",
                                             key, text, kMostBenchTokens));
        }
        out.push_back(value);
        at = comma + 1;
    }
    return out;
}

std::vector<GenerateRequest> someRequests(const ModelConfig& config, std::int64_t batch, std::int64_t prompt,
                                          std::int64_t newTokens) {
    std::vector<GenerateRequest> out(static_cast<std::size_t>(batch));
    for (std::size_t i = 0; i < out.size(); ++i) {
        for (std::int64_t t = 0; t < prompt; ++t) {
            // Neighbours differ, and so do sequences: any spread over the vocabulary will do.
            const std::uint64_t mixed =
                (std::uint64_t{i} << 32 | static_cast<std::uint64_t>(t)) * 0x9E3779B97F4A7C15ULL;
            out[i].prompt.push_back(
                static_cast<std::int32_t>((mixed >> 33) % static_cast<std::uint64_t>(config.vocab)));
        }
        out[i].maxNewTokens = newTokens;
    }
    return out;
}

void benchCpuDecode(const Run& run) {
    Json& metrics = run.metrics;
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    if (!context->can().runsOnHost) {
        throw base::Unsupported("backend: cpu-decode measures the CPU; use cpu");
    }
    addContextMetrics(run, *context);
    double bandwidth = kernels::measureReadBandwidth(*context);
    const ModelOptions options = modelOptions(run, *context, run.spec.text("weights"));
    Model model(*context, source, options, run.sinks.progress);
    GenerateRequest request;
    for (std::int64_t i = 0; i < kPromptTokens; ++i) {
        request.prompt.push_back(static_cast<std::int32_t>(i % source.config.vocab));
    }
    request.maxNewTokens = kNewTokens;
    Generator generator(model, nullptr, generateOptions(run, options));
    std::vector<double> rates;
    GenerateReport report;
    for (std::int64_t i = 0; i < std::max<std::int64_t>(run.repeats(), 1); ++i) {
        generator.run({request}, report, {});
        rates.push_back(static_cast<double>(report.decodedTokens) / report.decodeSeconds);
    }
    // Measured on both sides: what else runs on the machine must not lower the ceiling.
    bandwidth = std::max(bandwidth, kernels::measureReadBandwidth(*context));
    const double bytesPerToken =
        static_cast<double>(model.weightBytesPerToken()) + static_cast<double>(report.kvBytes) / 2;
    metrics[result::kRows.key] =
        Json::array({benchRow("cpu-decode", median(rates), "tokens/s", bandwidth / bytesPerToken),
                     benchRow("read-bandwidth", bandwidth, "B/s"), benchRow("bytes-per-token", bytesPerToken, "B")});
    addMemoryMetrics(metrics, *context);
}

namespace {

void runBench(const Run& run) {
    const std::string name = run.spec.text("bench");
    if (name == "gpt-oss") {
        benchGptOss(run);
    } else if (name == "batch") {
        benchBatch(run);
    } else if (name == "load") {
        benchLoad(run);
    } else if (name == "profiling") {
        benchProfiling(run);
    } else if (name == "attention") {
        benchAttention(run);
    } else if (name == "pack") {
        benchPack(run);
    } else if (name == "cpu-decode") {
        benchCpuDecode(run);
    } else {
        benchCeiling(run);
    }
}

/// Packing and the ceilings copy and matmul are measured without one.
bool needsModel(const Experiment& experiment) {
    const std::string bench = experiment.text("bench");
    return bench != "pack" && bench != "copy" && bench != "matmul";
}

bool prefersCpu(const Experiment& experiment) {
    return experiment.text("bench") == "cpu-decode";
}

bool switchesProfiles(const Experiment& experiment) {
    return experiment.text("bench") == "profiling";
}

} // namespace

constinit const Workload kBenchWorkload = {
    .name = "bench",
    .title = "Benchmark",
    .optionSets = kModelOptions | kWeightsOptions | kDeviceOptions | kRunOptions,
    .optionKeys = kBenchSharedKeys,
    .ownOptions = kBenchOptions,
    .ownOptionsBefore = "output",
    .needsModel = needsModel,
    .run = runBench,
    .prefersCpu = prefersCpu,
    .switchesProfiles = switchesProfiles,
    .startsAfresh = true,
    .results = kBenchResults,
};

} // namespace vitrine::engine
