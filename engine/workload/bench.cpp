// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// bench cpu-decode: how close decoding comes to what reading its bytes would allow.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/run_setup.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kPromptTokens = 8;
constexpr std::int64_t kNewTokens = 24;

/// Sums 64-bit words with several independent chains, so that the memory and not the adder is the limit.
std::uint64_t sumWords(const std::uint64_t* words, std::int64_t count) {
    std::uint64_t sums[8] = {};
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (int lane = 0; lane < 8; ++lane) {
            sums[lane] += words[i + lane];
        }
    }
    std::uint64_t total = 0;
    for (const std::uint64_t sum : sums) {
        total += sum;
    }
    return total;
}

/// Bytes per second that all threads together read from a buffer far larger than the caches; the best of some passes.
double readBandwidth(kernels::Context& context) {
    constexpr std::int64_t kWords = (std::int64_t{768} << 20) / 8;
    constexpr int kPasses = 5;
    const kernels::Tensor buffer(context.memory().general(), base::MemoryCategory::Workspace, "bench.buffer",
                                 kernels::DType::U64, kernels::Shape{kWords});
    auto* words = buffer.view().as<std::uint64_t>();
    auto& pool = context.cpu()->pool();
    constexpr std::int64_t kGrain = std::int64_t{1} << 17;
    pool.parallelFor(kWords, kGrain, [&](std::int64_t begin, std::int64_t end, int) {
        std::fill(words + begin, words + end, std::uint64_t{1});
    });
    double best = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
        std::atomic<std::uint64_t> sum = 0;
        const base::TimeNs begin = base::monotonicNs();
        pool.parallelFor(kWords, kGrain,
                         [&](std::int64_t from, std::int64_t to, int) { sum += sumWords(words + from, to - from); });
        const double seconds = static_cast<double>(base::monotonicNs() - begin) * 1e-9;
        if (sum != static_cast<std::uint64_t>(kWords)) {
            throw base::Internal("the bandwidth test read wrong values");
        }
        best = std::max(best, 8.0 * static_cast<double>(kWords) / seconds);
    }
    return best;
}

Json row(const char* name, double value, const char* unit, Json ceiling = {}, Json ratio = {}) {
    return {
        {"name", name}, {"value", value}, {"unit", unit}, {"ceiling", std::move(ceiling)}, {"ratio", std::move(ratio)}};
}

} // namespace

void runBench(const Run& run) {
    Json& metrics = run.metrics;
    const ModelSource source = openSource(run);
    const std::unique_ptr<kernels::Context> context = makeContext(run);
    if (context->cpu() == nullptr) {
        throw base::Unsupported("backend: cpu-decode measures the CPU; use cpu");
    }
    addContextMetrics(run, *context);
    double bandwidth = readBandwidth(*context);
    const ModelOptions options = modelOptions(run, *context, run.text("weights", "quantized"));
    Model model(*context, source, options, run.sinks.progress);
    GenerateRequest request;
    for (std::int64_t i = 0; i < kPromptTokens; ++i) {
        request.prompt.push_back(static_cast<std::int32_t>(i % source.config.vocab));
    }
    request.maxNewTokens = kNewTokens;
    Generator generator(model, nullptr, generateOptions(run, options));
    std::vector<double> rates;
    GenerateReport report;
    for (std::int64_t i = 0; i < std::max<std::int64_t>(run.integer("repeat", 1), 1); ++i) {
        generator.run({request}, report, {});
        rates.push_back(static_cast<double>(report.decodedTokens) / report.decodeSeconds);
    }
    // Measured on both sides: what else runs on the machine must not lower the ceiling.
    bandwidth = std::max(bandwidth, readBandwidth(*context));
    const double tokensPerSecond = median(rates);
    const double bytesPerToken =
        static_cast<double>(model.weightBytesPerToken()) + static_cast<double>(report.kvBytes) / 2;
    const double ceiling = bandwidth / bytesPerToken;
    metrics["rows"] =
        Json::array({row("cpu-decode", tokensPerSecond, "tokens/s", ceiling, tokensPerSecond / ceiling),
                     row("read-bandwidth", bandwidth, "B/s"), row("bytes-per-token", bytesPerToken, "B")});
    addMemoryMetrics(metrics, *context);
}

} // namespace vitrine::engine
