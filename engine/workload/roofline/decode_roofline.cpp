// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/roofline/decode_roofline.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/roofline/measured_ceilings.h"
#include "kernels/context/context_options.h"
#include "kernels/core/device_traits.h"
#include "kernels/cpu/read_bandwidth.h"

namespace vitrine::engine {
namespace {

constexpr std::uint64_t kShortRead = std::uint64_t{256} << 20;
constexpr double kWorthMeasuring = 1; ///< seconds of decoding that a measurement of a tenth of that may follow

/// On a context of its own: the run's record and its peak are what the run did.
Ceiling measuredCopy(const Run& run, kernels::Context& used) {
    static std::mutex mutex;
    static std::map<int, Ceiling> known;
    const std::lock_guard lock(mutex);
    const int device = static_cast<int>(run.spec.integer("device"));
    if (const auto found = known.find(device); found != known.end()) {
        return found->second;
    }
    try {
        kernels::ContextOptions options;
        options.backend = used.backend();
        options.cuda.device = device;
        options.stop = run.stop;
        kernels::Context context(options);
        return known[device] = measureCopy(context, 0);
    } catch (const base::OutOfMemory&) {
        return {used.traits().memoryBandwidth, "device profile: no memory was left to measure with"};
    }
}

/// Sum over new tokens of how many positions each sees: `before` tokens, those before it, itself; `window` 0: all.
double seenPositions(std::int64_t before, std::int64_t tokens, std::int64_t window) {
    // The first token sees before + 1; from `grown` tokens on the window is full.
    const std::int64_t grown = window == 0 ? tokens : std::clamp<std::int64_t>(window - before, 0, tokens);
    const double rising =
        static_cast<double>(grown) * (static_cast<double>(before) + (static_cast<double>(grown) + 1) / 2);
    return rising + static_cast<double>(tokens - grown) * static_cast<double>(window);
}

Ceiling bandwidthOf(const Run& run, kernels::Context& context, double decodeSeconds) {
    const kernels::DeviceTraits& traits = context.traits();
    if (context.can().runsAhead) {
        // A copy between buffers that lie where a run's memory was is up to a tenth slower than one on a fresh device.
        const Ceiling measured = measuredCopy(run, context);
        return kernels::profileOfDevice(traits.name).empty()
                   ? measured
                   : Ceiling{traits.memoryBandwidth,
                             fmt::format("device profile; a copy after the run: {:.2f} TB/s", measured.rate * 1e-12)};
    }
    if (context.can().runsOnHost && decodeSeconds >= kWorthMeasuring) {
        return {kernels::measureReadBandwidth(context, kShortRead), "all threads read 256 MiB"};
    }
    return {traits.memoryBandwidth,
            context.can().virtualTime ? "device profile" : "assumed: too short a run to measure after"};
}

} // namespace

double expectedExperts(std::int64_t count, std::int64_t each, double tokens) {
    const double missed = 1 - static_cast<double>(each) / static_cast<double>(count);
    return static_cast<double>(count) * (1 - std::pow(missed, tokens));
}

double stepFlops(const ModelConfig& config, std::int64_t before, std::int64_t tokens) {
    const auto hidden = static_cast<double>(config.hidden);
    double perToken = 0;
    double total = 2 * hidden * static_cast<double>(config.vocab);
    for (const LayerConfig& layer : config.layers) {
        perToken += 2 * static_cast<double>(config.attentionWeights());
        perToken += layer.moe ? 2 * hidden * static_cast<double>(config.experts) +
                                    6 * hidden *
                                        static_cast<double>(config.moeIntermediate * config.expertsPerToken +
                                                            config.sharedIntermediate)
                              : 6 * hidden * static_cast<double>(config.intermediate);
        total += 4 * static_cast<double>(config.queryWidth()) * seenPositions(before, tokens, layer.window);
    }
    return total + perToken * static_cast<double>(tokens);
}

DecodeBytes decodeBytes(const Model& model, double sequences, double expertsHit, double kvBytes) {
    const WeightBytes weights = model.weightBytes();
    DecodeBytes bytes;
    bytes.experts = expertsHit * static_cast<double>(weights.expert);
    bytes.shared = static_cast<double>(weights.shared) + sequences * static_cast<double>(weights.embeddingRow);
    bytes.head = static_cast<double>(weights.head);
    bytes.kv = kvBytes;
    return bytes;
}

std::optional<DecodeRoofline> decodeRoofline(const Model& model, const GenerateReport& report,
                                             const GenerateOptions& options) {
    if (report.decodeSteps <= 0 || report.decodedTokens <= 0 || report.decodeSeconds <= 0) {
        return std::nullopt;
    }
    const ModelConfig& config = model.config();
    double kv = 0, context = 0;
    for (const GenerateResult& result : report.results) {
        // The first new token comes from the prefill; each later one reads what stands before it and itself.
        for (std::int64_t i = 1; i < static_cast<std::int64_t>(result.ids.size()); ++i) {
            kv += static_cast<double>(config.kvBytes(result.promptTokens + i, options.cache.dtype));
            context += static_cast<double>(result.promptTokens + i);
        }
    }
    const auto steps = static_cast<double>(report.decodeSteps);
    const auto tokens = static_cast<double>(report.decodedTokens);
    const std::int64_t moeLayers = model.weightBytes().moeLayers;
    DecodeRoofline roofline;
    roofline.sequences = tokens / steps;
    roofline.mixture = moeLayers > 0;
    if (roofline.mixture) {
        const auto expected = [&](double sequences) {
            return expectedExperts(config.experts, config.expertsPerToken, sequences);
        };
        roofline.expertsHit = expected(roofline.sequences);
        const ExpertUse* use = options.expertUse;
        if (use != nullptr && use->steps > 0) {
            // Requests that ended leave fewer sequences to the mean step than the counted ones had.
            const auto counted = static_cast<double>(use->steps);
            roofline.counted = true;
            roofline.expertsHit *= static_cast<double>(use->experts) / (counted * static_cast<double>(moeLayers)) /
                                   expected(static_cast<double>(use->tokens) / counted);
        }
    }
    roofline.step =
        decodeBytes(model, roofline.sequences, roofline.expertsHit * static_cast<double>(moeLayers), kv / steps);
    roofline.stepSeconds = report.decodeSeconds / steps;
    roofline.contextTokens = context / tokens;
    return roofline;
}

void addRooflineMetrics(const Run& run, kernels::Context& context, const DecodeRoofline& roofline) {
    const Ceiling bandwidth = bandwidthOf(run, context, run.metrics.value(result::kDecodeSeconds.key, 0.0));
    if (!(bandwidth.rate > 0)) {
        return;
    }
    const double each = 1 / roofline.sequences;
    nlohmann::json parts = {{roofline.mixture ? "attention" : "layers", roofline.step.shared * each},
                            {"head", roofline.step.head * each},
                            {"kv_cache", roofline.step.kv * each}};
    if (roofline.mixture) {
        parts["experts"] = roofline.step.experts * each;
    }
    const double floor = roofline.step.total() / bandwidth.rate;
    run.metrics["roofline"] = {{"bandwidth", bandwidth.rate},
                               {"bandwidth_source", bandwidth.what},
                               {"parts", std::move(parts)},
                               {"bytes_per_token", roofline.step.total() * each},
                               {"floor_seconds_per_token", floor * each},
                               {"seconds_per_token", roofline.stepSeconds * each},
                               {"ratio", floor / roofline.stepSeconds},
                               {"sequences", roofline.sequences},
                               {"context_tokens", roofline.contextTokens}};
    if (roofline.mixture) {
        run.metrics["roofline"]["experts_hit"] = roofline.expertsHit;
        run.metrics["roofline"]["experts_counted"] = roofline.counted;
    }
}

} // namespace vitrine::engine
