// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_source.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "engine/workload/attention/attention_tensors.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

constexpr char kDocuments[] = "documents:";

} // namespace

void MaskSource::setCapture(const std::string& capture, const std::string& line) {
    for (std::string& one : captures) {
        if (captureName(one) == capture) {
            one = line;
            return;
        }
    }
    captures.push_back(line);
}

std::string captureName(const std::string& text) {
    return text.substr(0, text.find('='));
}

std::string captureValue(const std::string& text) {
    const std::size_t equals = text.find('=');
    return equals == std::string::npos ? std::string() : text.substr(equals + 1);
}

std::vector<std::int64_t> captureLengths(const std::string& text) {
    const std::string value = captureValue(text);
    std::vector<std::int64_t> lengths;
    if (!value.starts_with(kDocuments)) {
        return lengths;
    }
    std::int64_t length = 0;
    for (std::size_t at = sizeof(kDocuments) - 1; at <= value.size(); ++at) {
        const char c = at < value.size() ? value[at] : ',';
        if (c >= '0' && c <= '9' && length <= engine::kMaxElements) {
            length = length * 10 + (c - '0');
        } else if (c == ',') {
            lengths.push_back(length);
            length = 0;
        }
    }
    return lengths;
}

std::vector<std::int64_t> equalLengths(std::int64_t tokens, std::int64_t documents) {
    documents = std::max<std::int64_t>(1, std::min(documents, tokens));
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(documents), tokens / documents);
    for (std::int64_t i = 0; i < tokens % documents; ++i) {
        ++lengths[static_cast<std::size_t>(i)];
    }
    return lengths;
}

std::vector<std::int64_t> exampleLengths(std::int64_t tokens) {
    static const std::vector<std::int64_t> kLengths = {1250, 2900, 640, 3460, 410, 2210, 1820, 780, 2914};
    const std::int64_t all = std::accumulate(kLengths.begin(), kLengths.end(), std::int64_t{0});
    if (tokens < 4 * static_cast<std::int64_t>(kLengths.size())) {
        return equalLengths(tokens, 3);
    }
    std::vector<std::int64_t> lengths;
    std::int64_t begin = 0, sum = 0;
    for (const std::int64_t length : kLengths) {
        sum += length;
        const std::int64_t end = std::max(begin + 1, sum * tokens / all);
        lengths.push_back(end - begin);
        begin = end;
    }
    return lengths;
}

MaskSource exampleSource(std::int64_t tokens) {
    MaskSource source;
    source.name = "sliding + document";
    source.text = "WINDOW = 2048\n"
                  "\n"
                  "def sliding(b, h, q_idx, kv_idx):\n"
                  "    causal = q_idx >= kv_idx\n"
                  "    near = q_idx - kv_idx < WINDOW\n"
                  "    return causal & near\n"
                  "\n"
                  "def document(b, h, q_idx, kv_idx):\n"
                  "    return doc_id[q_idx] == doc_id[kv_idx]\n"
                  "\n"
                  "mask = and_masks(sliding, document)\n";
    source.captures = {engine::documentsText("doc_id", exampleLengths(tokens))};
    return source;
}

MaskSource causalSource() {
    MaskSource source;
    source.name = "causal";
    source.text = "def causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n";
    return source;
}

engine::ProgramChoice programChoice(const MaskSource& source, const MaskSizes& sizes) {
    engine::ProgramChoice choice;
    choice.program = source.text;
    choice.parameters = source.parameters;
    choice.captures = source.captures;
    choice.batch = sizes.batch;
    choice.heads = sizes.heads;
    choice.kvHeads = sizes.kvHeads;
    choice.queries = sizes.queries;
    choice.keys = sizes.keys;
    choice.headDim = sizes.headDim;
    return choice;
}

std::string sizesText(const MaskSizes& sizes) {
    return fmt::format("{},{},{},{},{},{}", sizes.batch, sizes.heads, sizes.kvHeads, sizes.queries, sizes.keys,
                       sizes.headDim);
}

Json maskExperiment(const MaskSource& source, const std::string& mask, const std::string& score,
                    const MaskSizes& sizes) {
    Json experiment = {
        {"vitrine", 1}, {"workload", "attention"}, {"random", sizesText(sizes)}, {"block_size", sizes.block}};
    for (const auto& [key, text] :
         {std::pair{"program", source.text}, std::pair{"mask", mask == kNoMod ? "" : mask},
          std::pair{"score", score == kNoMod ? "" : score}, std::pair{"tensors", source.tensorsFile}}) {
        if (!text.empty()) {
            experiment[key] = text;
        }
    }
    for (const auto& [name, value] : source.parameters) {
        experiment["parameter"].push_back(fmt::format("{}={}", name, value));
    }
    if (!source.captures.empty()) {
        experiment["capture"] = source.captures;
    }
    return experiment;
}

MaskSource sourceOfExperiment(const engine::Experiment& experiment, const std::vector<std::string>& modTexts) {
    MaskSource source;
    for (const std::string& text : modTexts) {
        source.text += text + (text.ends_with('\n') ? "\n" : "\n\n");
    }
    source.text += experiment.text("program");
    source.mask = experiment.text("mask");
    source.score = experiment.text("score");
    if (source.mask.empty()) {
        source.mask = kNoMod;
    }
    if (source.score.empty()) {
        source.score = kNoMod;
    }
    for (const std::string& text : experiment.texts("parameter")) {
        try {
            source.parameters.insert(engine::parseParameter("parameter", text));
        } catch (const base::BadInput&) {
            continue; // a run with it never began
        }
    }
    source.captures = experiment.texts("capture");
    source.tensorsFile = experiment.text("tensors");
    return source;
}

MaskSizes sizesOfExperiment(const engine::Experiment& experiment, MaskSizes other) {
    try {
        const std::string asked = experiment.text("stands_for");
        const engine::AttentionSizes sizes =
            engine::parseAttentionSizes(asked.empty() ? experiment.text("random") : asked);
        other = {sizes.batch, sizes.heads, sizes.kvHeads, sizes.queries, sizes.keys, sizes.headDim, other.block};
    } catch (const base::BadInput&) {
        // Tensors of a file: what they measure stands in the run's metrics, which the caller has.
    }
    other.block = experiment.integer("block_size");
    return other;
}

std::int64_t parseLength(const QString& text) {
    QString digits;
    std::int64_t unit = 1;
    for (const QChar c : text) {
        if (c.isDigit() && unit == 1) {
            digits += c;
        } else if ((c == QLatin1Char('k') || c == QLatin1Char('K')) && unit == 1) {
            unit = 1024;
        } else if ((c == QLatin1Char('m') || c == QLatin1Char('M')) && unit == 1) {
            unit = 1024 * 1024;
        } else if (!c.isSpace() && c != QLatin1Char(',') && c != QLatin1Char('.') && c != QChar(0x202f)) {
            return 0;
        }
    }
    bool good = false;
    const qlonglong value = digits.toLongLong(&good);
    return good && value > 0 && value <= kLongestMask / unit ? value * unit : 0;
}

} // namespace vitrine::ui
