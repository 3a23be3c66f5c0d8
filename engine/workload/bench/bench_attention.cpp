// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// bench attention: forward and backward of programs that people use, each by the attention workload on random tensors.

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/workload/bench/bench.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workloads.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kAttentionTimes = 7;

struct Sizes {
    std::int64_t batch, heads, kvHeads, length, headDim;
};

struct Program {
    const char* name;
    std::string mask, score;
};

/// Of the catalogue; windows and documents for 8,192 keys, or as much smaller as `length` is.
std::vector<Program> programsFor(const Sizes& sizes) {
    const auto part = [&](std::int64_t of8192) { return std::max<std::int64_t>(of8192 * sizes.length / 8192, 1); };
    const std::int64_t first[] = {part(2735), part(708), part(2073), part(2038)};
    const std::string lengths =
        fmt::format("{}, {}", fmt::join(first, ", "), sizes.length - first[0] - first[1] - first[2] - first[3]);
    return {{"noop", "", ""},
            {"causal", "causal", ""},
            {"alibi", "causal", fmt::format("generate_alibi_bias({})", sizes.heads)},
            {"soft-cap", "causal", "generate_tanh_softcap(20)"},
            {"sliding-1024", fmt::format("sliding_window_causal({})", part(1024)), ""},
            {"sliding-128", fmt::format("sliding_window_causal({})", part(128)), ""},
            {"prefix", fmt::format("generate_prefix_lm_mask({})", part(1024)), ""},
            {"documents", fmt::format("document_causal(document_ids([{}]))", lengths), ""}};
}

/// What attention reports of one program.
Json measure(const Run& run, const Sizes& sizes, const Program& program) {
    Experiment spec = run.spec.as(kAttentionWorkload);
    spec.set("random",
             fmt::format("{},{},{},{},{}", sizes.batch, sizes.heads, sizes.kvHeads, sizes.length, sizes.headDim));
    spec.set("backward", true);
    spec.set("repeat", run.repeats(kAttentionTimes));
    if (!program.mask.empty()) {
        spec.set("mask", program.mask);
    }
    if (!program.score.empty()) {
        spec.set("score", program.score);
    }
    Json metrics;
    kAttentionWorkload.run({spec, run.sinks, run.stop, metrics});
    return metrics;
}

} // namespace

void benchAttention(const Run& run) {
    Ceiling ceiling;
    bool small = false;
    {
        const RunDevices context = makeContext(run);
        addContextMetrics(run, *context);
        run.metrics.erase(result::kModel.key);
        small = context->can().runsOnHost;
        ceiling = measureMatmul(*context, run.seed());
    }
    Json rows = Json::array({ceilingRow("matmul", ceiling)});
    const Sizes large[] = {{4, 16, 16, 8192, 128}, {2, 64, 8, 8192, 64}};
    const Sizes few[] = {{1, 2, 2, 256, 128}, {1, 4, 2, 256, 64}};
    for (const Sizes& sizes : small ? few : large) {
        for (const Program& program : programsFor(sizes)) {
            const Json measured = measure(run, sizes, program);
            for (const char* direction : {"forward", "backward"}) {
                Json row = benchRow(fmt::format("{} D{} {}", program.name, sizes.headDim, direction),
                                    measured.at(std::string(direction) + "_tflops").get<double>(), "TFLOP/s",
                                    ceiling.rate * 1e-12);
                row["ms"] = measured.at(std::string(direction) + "_ms");
                rows.push_back(std::move(row));
                run.metrics[result::kRows.key] = rows; // a run that is stopped keeps what was measured
            }
        }
    }
}

} // namespace vitrine::engine
