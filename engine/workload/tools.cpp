// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workloads around a model: tokenize and synthesize.

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/checkpoint/synthesize.h"
#include "engine/workload/run_setup.h"
#include "engine/workload/text_lines.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

Json tokenizedRow(const Tokenizer& tokenizer, const std::string& text) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text, false);
    return {{"ids", ids}, {"decoded", tokenizer.decode(ids)}};
}

std::string tokenizerFile(const Run& run) {
    if (run.spec.contains("tokenizer")) {
        return run.text("tokenizer");
    }
    const ModelSource source = openSource(run);
    if (source.tokenizerFile.empty()) {
        throw base::BadInput(source.name + ": tokenizer.json: missing; name a tokenizer file");
    }
    return source.tokenizerFile;
}

} // namespace

void runTokenize(const Run& run) {
    const auto tokenizer = Tokenizer::load(tokenizerFile(run));
    Json rows = Json::array();
    if (run.spec.contains("text")) {
        rows.push_back(tokenizedRow(*tokenizer, run.text("text")));
    } else {
        const std::string path = run.text("jsonl");
        forTextLines(path, [&](std::string_view line, std::int64_t number) {
            base::throwIfStopped(run.stop);
            const Json row = base::parseStrictJson(line, path, base::JsonLimits{.firstLine = number});
            if (!row.is_object() || !row.contains("text") || !row["text"].is_string()) {
                throw base::BadInput(fmt::format("{}: line {}: text: must be a text", path, number));
            }
            rows.push_back(tokenizedRow(*tokenizer, row["text"].get<std::string>()));
        });
    }
    run.metrics["rows"] = std::move(rows);
}

void runSynthesize(const Run& run) {
    const ModelSource source = openSource(run);
    const std::unique_ptr<kernels::Context> context = makeContext(run);
    addContextMetrics(run, *context);
    const auto seed = run.spec.value("seed", std::uint64_t{0});
    const base::TimeNs begin = context->clock().now();
    const FillTensor fill = [&](const TensorSpec& spec, const RandomRule&, std::uint32_t stream, void* data) {
        kernels::TensorView view;
        view.data = data;
        view.dtype = spec.dtype;
        view.shape = kernels::Shape(spec.shape);
        fillSynthetic(*context, spec, source.config, stream, seed, view);
    };
    const SynthesizedFiles files = synthesizeCheckpoint(source, run.text("output"), fill, run.sinks.progress, run.stop);
    run.metrics["bytes"] = files.bytes;
    run.metrics["files"] = files.files;
    const double seconds = static_cast<double>(context->clock().now() - begin) * 1e-9;
    run.metrics["seconds"] = seconds;
    run.metrics["gb_per_second"] = static_cast<double>(files.bytes) * 1e-9 / seconds;
}

} // namespace vitrine::engine
