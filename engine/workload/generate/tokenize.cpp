// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/strict_json.h"
#include "base/text_lines.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 3> kTokenizeResults = {result::kRunSet, result::kAnswerSet, result::kFileSet};

using Json = nlohmann::json;

/// Columns as in option_table.cpp.
constexpr std::array kTokenizeOptions = {
    OptionSpec{"tokenizer", OptionType::Path, "", "", 0, 0, "", "", "Model", "tokenizer.json; unset: the model's"},
    OptionSpec{"jsonl", OptionType::Path, "", "", 0, 0, "", "", "Run", "File of rows {\"text\": ...}"},
    OptionSpec{"text", OptionType::Text, "", "", 0, 0, "", "", "Run", "One text instead of a file"},
};

Json tokenizedRow(const Tokenizer& tokenizer, const std::string& text) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text, false);
    return {{"ids", ids}, {"decoded", tokenizer.decode(ids)}};
}

std::string tokenizerFile(const Run& run) {
    if (run.spec.has("tokenizer")) {
        return run.spec.text("tokenizer");
    }
    const ModelSource source = openSource(run);
    if (source.tokenizerFile.empty()) {
        throw base::BadInput(source.name + ": tokenizer.json: missing; name a tokenizer file");
    }
    return source.tokenizerFile;
}

void runTokenize(const Run& run) {
    const auto tokenizer = Tokenizer::load(tokenizerFile(run));
    Json rows = Json::array();
    if (run.spec.has("text")) {
        rows.push_back(tokenizedRow(*tokenizer, run.spec.text("text")));
    } else {
        const std::string path = run.spec.text("jsonl");
        base::forTextLines(path, [&](std::string_view line, std::int64_t number) {
            base::throwIfStopped(run.stop);
            const Json row = base::parseStrictJson(line, path, base::JsonLimits{.firstLine = number});
            if (!row.is_object() || !row.contains("text") || !row["text"].is_string()) {
                throw base::BadInput(fmt::format("{}: line {}: text: must be a text", path, number));
            }
            rows.push_back(tokenizedRow(*tokenizer, row["text"].get<std::string>()));
        });
    }
    run.metrics[result::kRows.key] = std::move(rows);
}

bool needsModel(const Experiment&) {
    return false;
}

void checkTokenize(const Experiment& experiment, const std::string& name) {
    if (!experiment.has("tokenizer") && !experiment.has("model")) {
        failOption(name, "tokenizer", "missing; name a tokenizer.json or a model folder");
    }
    if (experiment.has("jsonl") == experiment.has("text")) {
        failOption(name, "jsonl", "give a file of rows or one text");
    }
}

/// A line for each text: its ids, a tab, and what they decode to as a JSON text.
std::optional<std::string> tokenizedWords(const Experiment&, const Json& metrics) {
    std::string text;
    for (const Json& row : metrics.value(result::kRows.key, Json::array())) {
        std::string ids;
        for (const Json& id : row.value("ids", Json::array())) {
            ids += (ids.empty() ? "" : " ") + id.dump();
        }
        text += fmt::format("{}\t{}\n", ids,
                            row.value("decoded", Json()).dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return text;
}

} // namespace

constinit const Workload kTokenizeWorkload = {
    .name = "tokenize",
    .title = "Tokenize",
    .optionSets = kModelOptions,
    .ownOptions = kTokenizeOptions,
    .ownOptionsBefore = "output",
    .needsModel = needsModel,
    .check = checkTokenize,
    .run = runTokenize,
    .results = kTokenizeResults,
    .resultText = tokenizedWords,
};

} // namespace vitrine::engine
