// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <nlohmann/json.hpp>

#include "engine/workload/load_metrics.h"
#include "engine/workload/run_setup.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

Json loadVariant(const Run& run, const ModelSource& source, kernels::Context& context, const std::string& weights) {
    std::vector<double> seconds;
    Json out = {{"weights", weights}};
    for (std::int64_t i = 0; i < run.integer("repeat", 1); ++i) {
        const Model model(context, source, modelOptions(run, context, weights), run.sinks.progress);
        const LoadReport& report = model.loadReport();
        seconds.push_back(report.seconds);
        out["bytes_read"] = report.bytesRead;
        out["resident_bytes"] = report.residentBytes;
        out["steady_bytes"] = context.memory().statistics().current;
    }
    const double time = median(seconds);
    out["seconds"] = time;
    out["disk_bytes"] = diskBytes(source);
    out["gb_per_second"] = time > 0 ? out["bytes_read"].get<double>() / time * 1e-9 : 0;
    addMemoryMetrics(out, context);
    return out;
}

} // namespace

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

void runLoad(const Run& run) {
    Json& metrics = run.metrics;
    const ModelSource source = openSource(run);
    const std::unique_ptr<kernels::Context> context = makeContext(run);
    metrics["variants"] = Json::array();
    const std::string weights = run.text("weights", "quantized");
    runMeasured(run, *context, [&] {
        // Quantized first: memory statistics only grow, and it never needs more.
        for (const std::string& variant : weights == "both" ? std::vector<std::string>{"quantized", "dequantized"}
                                                            : std::vector<std::string>{weights}) {
            metrics["variants"].push_back(loadVariant(run, source, *context, variant));
        }
    });
    measureAfterLoad(run, source, metrics["variants"]);
}

} // namespace vitrine::engine
