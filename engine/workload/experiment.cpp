// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/edit_distance.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/workload/attention_tensors.h"
#include "engine/workload/option_value.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

std::string_view nearestKey(std::string_view key) {
    constexpr std::size_t kLongest = 64; // names longer than this are no typing mistake: compare their beginning
    std::string_view best;
    std::size_t bestDistance = std::numeric_limits<std::size_t>::max();
    for (const OptionSpec& option : optionTable()) {
        const std::size_t distance = base::editDistance(key.substr(0, kLongest), option.key);
        if (distance < bestDistance) {
            bestDistance = distance;
            best = option.key;
        }
    }
    return best;
}

void requireOneInput(const Json& experiment, const std::string& name, bool searched) {
    constexpr std::array<std::string_view, 5> kInputs = {"prompt", "chat", "tokens", "tokens_file", "prompt_length"};
    std::vector<std::string_view> given;
    for (const std::string_view key : kInputs) {
        if (experiment.contains(key)) {
            given.push_back(key);
        }
    }
    if (given.size() > 1) {
        failOption(name, given[1], fmt::format("stands together with {}; give one of them", given[0]));
    }
    if (given.empty() && !searched) {
        failOption(name, "prompt", "missing; give one of prompt, chat, tokens, tokens_file, prompt_length");
    }
}

void checkAttention(const Json& experiment, const std::string& name) {
    for (const char* key : {"random", "stands_for"}) {
        try {
            if (experiment.contains(key)) {
                parseAttentionSizes(experiment[key].get<std::string>(), key);
            }
        } catch (const base::BadInput& error) {
            throw base::BadInput(fmt::format("{}: {}", name, error.message()));
        }
    }
    if (!experiment.contains("random") && !experiment.contains("tensors")) {
        failOption(name, "tensors", "name a file with q, k and v, or give random sizes as B,H,HKV,S,D");
    }
}

void checkTogether(const Json& experiment, const std::string& name, const std::string& workload, bool plan) {
    const auto need = [&](std::string_view key, std::string_view what) {
        if (!experiment.contains(key) || experiment[std::string(key)] == "") {
            failOption(name, key, fmt::format("missing; {}", what));
        }
    };
    const std::string bench = experiment.value("bench", "");
    if (workload != "tokenize" && workload != "attention" && bench != "copy" && bench != "matmul") {
        need("model", "name a model folder, ORG/NAME or synthetic:NAME");
    }
    if (workload == "attention") {
        checkAttention(experiment, name);
    } else if (const std::string dtype = experiment.value("dtype", ""); dtype == "float16" || dtype == "float64") {
        failOption(name, "dtype", fmt::format("{} is for attention only; choose float32 or bfloat16", dtype));
    }
    if (workload != "load" && experiment.value("weights", "") == "both") {
        failOption(name, "weights", "both is for load only; choose quantized or dequantized");
    }
    if (workload == "generate" || workload == "load") {
        // A load needs none: with one it answers it after the load.
        requireOneInput(experiment, name, workload == "load" || (plan && experiment.value("max_context", false)));
    }
    if (workload == "batch") {
        need("trace", "name a file of requests, or one of fixed, uniform, poisson, long-tail");
    }
    if (plan && workload != "generate") {
        for (const std::string_view key : {"max_context", "max_batch"}) {
            if (experiment.value(std::string(key), false)) {
                failOption(name, key, "only a plan of generate searches");
            }
        }
    }
    if (workload == "logits") {
        need("tokens_file", "name a safetensors file with input_ids");
        need("output", "name the file that the logits go to");
    }
    if (workload == "synthesize") {
        need("output", "name the folder that the checkpoint goes to");
        if (!experiment.value("model", std::string()).starts_with("synthetic:")) {
            failOption(name, "model", "synthesize writes synthetic models only; name one as synthetic:NAME");
        }
    }
    if (workload == "tokenize") {
        if (!experiment.contains("tokenizer") && !experiment.contains("model")) {
            failOption(name, "tokenizer", "missing; name a tokenizer.json or a model folder");
        }
        if (experiment.contains("jsonl") == experiment.contains("text")) {
            failOption(name, "jsonl", "give a file of rows or one text");
        }
    }
}

} // namespace

Json parseOption(const OptionSpec& option, std::string_view text) {
    return valueFromText(option, text, {});
}

Json validateExperiment(const Json& experiment, const std::string& name) {
    const std::string file = name.empty() ? "experiment" : name;
    if (!experiment.is_object()) {
        throw base::BadInput(file + ": must be a JSON object with the keys vitrine and workload");
    }
    if (!experiment.contains("vitrine") || !experiment["vitrine"].is_number_integer() || experiment["vitrine"] != 1) {
        failOption(file, "vitrine", "must be 1, the version of the format");
    }
    if (!experiment.contains("workload") || !experiment["workload"].is_string() ||
        workloadBit(experiment["workload"].get<std::string>()) == 0) {
        failOption(file, "workload", fmt::format("must be one of {}", fmt::join(workloadNames(), ", ")));
    }
    const std::string workload = experiment["workload"];
    const bool plan = experiment.contains("plan") && experiment["plan"].is_boolean() && experiment["plan"].get<bool>();

    Json out = {{"vitrine", 1}, {"workload", workload}};
    for (const auto& [key, value] : experiment.items()) {
        if (key == "vitrine" || key == "workload") {
            continue;
        }
        const OptionSpec* option = findOption(key);
        if (option == nullptr) {
            failOption(file, key, fmt::format("unknown key; the nearest known one is {}", nearestKey(key)));
        }
        if (!optionApplies(*option, workload, plan)) {
            failOption(file, key, fmt::format("{} does not take it; remove it", workload));
        }
        if (!value.is_null()) {
            out[key] = canonicalValue(*option, value, file);
        }
    }
    for (const OptionSpec& option : optionTable()) {
        const std::string key(option.key);
        if (!option.defaultText.empty() && !out.contains(key) && optionApplies(option, workload, plan)) {
            out[key] = parseOption(option, option.defaultText);
        }
    }
    checkTogether(out, file, workload, plan);
    return out;
}

std::vector<SpecDifference> diffExperiments(const Json& a, const Json& b) {
    std::vector<std::string> keys = {"vitrine", "workload"};
    for (const OptionSpec& option : optionTable()) {
        keys.emplace_back(option.key);
    }
    for (const Json* side : {&a, &b}) {
        for (const auto& [key, value] : side->items()) {
            if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
                keys.push_back(key);
            }
        }
    }
    const auto textOf = [](const Json& side, const std::string& key) {
        if (!side.contains(key) || side[key].is_null()) {
            return std::string("–");
        }
        const OptionSpec* option = findOption(key);
        const Json& value = side[key];
        return option != nullptr && option->type == OptionType::Bytes && value.is_number_unsigned()
                   ? base::formatBytes(value.get<std::uint64_t>())
                   : valueText(value);
    };
    std::vector<SpecDifference> differences;
    for (const std::string& key : keys) {
        const Json left = a.contains(key) ? a[key] : Json();
        const Json right = b.contains(key) ? b[key] : Json();
        if (left != right) {
            differences.push_back({key, textOf(a, key), textOf(b, key)});
        }
    }
    return differences;
}

} // namespace vitrine::engine
