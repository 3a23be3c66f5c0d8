// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter_keys.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

namespace vitrine::engine {

using nlohmann::json;

namespace {

/// Keys of methods that add something to W x + scale B A x. They must be missing, null, false, or empty.
constexpr std::array<std::pair<const char*, std::string_view>, 12> kForeignKeys = {{
    {"lora_bias", "biases of B"},
    {"layer_replication", "repeated layers"},
    {"alora_invocation_tokens", "adapters that begin at a token"},
    {"arrow_config", "routed adapters"},
    {"kasa_config", "KaSA"},
    {"monteclora_config", "MonteCLoRA"},
    {"megatron_config", "Megatron's linears"},
    {"use_qalora", "QALoRA"},
    {"use_bdlora", "block-diagonal adapters"},
    {"target_modules_to_tie", "adapters that modules share"},
    {"modules_to_tie", "modules that share what is stored whole"},
    {"shift_bias", "shifted biases"},
}};

/// Keys that say where an adapter comes from, how it began and how it is trained. None changes what it computes:
/// fan_in_fan_out is about Conv1D, which no family here has, and PEFT passes over it for other linears; velora_config
/// changes the backward pass alone; the configs of ways to begin count with init_lora_weights, which is read.
constexpr std::array<const char*, 19> kHarmlessKeys = {
    "auto_mapping",   "revision",          "inference_mode",  "peft_version", "megatron_core",
    "fan_in_fan_out", "loftq_config",      "eva_config",      "corda_config", "lora_ga_config",
    "velora_config",  "qalora_group_size", "runtime_config",  "enable_lora",  "merge_weights",
    "library_name",   "unsloth_fixed",     "unsloth_version", "adapter_name",
};

/// Kinds of models that have their own head, so what they give is not what a causal model gives.
constexpr std::array<std::string_view, 4> kOtherTasks = {"SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS", "SEQ_2_SEQ_LM"};

} // namespace

bool meansNothing(const json& value) {
    return value.is_null() || value == json(false) ||
           ((value.is_array() || value.is_object() || value.is_string()) && value.empty());
}

void refuseForeignKeys(ConfigReader& reader) {
    const std::string type = reader.text("peft_type", "LORA");
    if (type != "LORA") {
        reader.unsupported("peft_type", fmt::format("{} adapters are not supported, only LORA", quotedText(type)));
    }
    const std::string task = reader.text("task_type", "");
    if (std::ranges::find(kOtherTasks, task) != kOtherTasks.end()) {
        reader.unsupported("task_type", fmt::format("{} is for models with another head than that of a language model; "
                                                    "give an adapter for CAUSAL_LM",
                                                    quotedText(task)));
    }
    for (const auto& [key, what] : kForeignKeys) {
        if (const json* value = reader.find(key); value != nullptr && !meansNothing(*value)) {
            reader.unsupported(key, fmt::format("{} are not supported; give an adapter without", what));
        }
    }
}

std::vector<std::string> unknownKeys(const json& object, const ConfigReader& reader) {
    std::vector<std::string> unknown;
    for (const auto& [key, value] : object.items()) {
        const bool known = reader.asked().contains(key) || std::ranges::find(kHarmlessKeys, key) != kHarmlessKeys.end();
        if (!known && !meansNothing(value)) {
            unknown.push_back(key);
        }
    }
    return unknown;
}

} // namespace vitrine::engine
