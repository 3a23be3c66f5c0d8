// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/planner/plan_sets.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <variant>

#include "engine/workload/batch/request_trace.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {

namespace {

constexpr std::array<std::string_view, 18> kInputs = {
    "data",       "tokens_file",   "eval_data", "prompt",           "chat",           "tokens",
    "task",       "difficulty",    "checker",   "reward_command",   "reward_timeout", "reward_memory",
    "eval_every", "eval_problems", "turns",     "reward_processes", "rollouts",       "system"};

/// What names outputs, or does not change what a step holds.
constexpr std::array<std::string_view, 10> kLeftOut = {"sequence_length", "resume",          "output", "save_gradients",
                                                       "save_trace",      "outputs",         "repeat", "validation",
                                                       "save_every",      "keep_checkpoints"};

OptionEdit choice(std::string_view key, std::string_view value) {
    return {std::string(key), std::string(value)};
}

/// The chunks of the loss that the run asks for; where it asks for none, those that the program chooses.
std::string chunksOf(const Experiment& experiment) {
    const std::string asked = experiment.text("loss_chunks");
    return asked == "1" ? "auto" : asked;
}

std::vector<PlanSetSpec> trainingSets(const Experiment& experiment) {
    const OptionEdit plain = choice("checkpoint", "layer"), offload = choice("checkpoint", "offload");
    const OptionEdit whole = choice("loss_chunks", "1"), chunks = choice("loss_chunks", chunksOf(experiment));
    const OptionEdit untiled = choice("tiled_mlp", "off"), tiled = choice("tiled_mlp", "on");
    return {{"none", {plain, whole, untiled}},
            {"chunked loss", {plain, chunks, untiled}},
            {"+ offload", {offload, chunks, untiled}},
            {"+ tiled MLP", {offload, chunks, tiled}}};
}

std::vector<PlanSwitchSpec> trainingSwitches(const Experiment& experiment) {
    return {{"Chunked loss", choice("loss_chunks", chunksOf(experiment)), choice("loss_chunks", "1")},
            {"Offload of layer inputs", choice("checkpoint", "offload"), choice("checkpoint", "layer")},
            {"Tiled MLP", choice("tiled_mlp", "on"), choice("tiled_mlp", "off")},
            {"8-bit AdamW", choice("optimizer", "adamw8bit"), choice("optimizer", "adamw")}};
}

} // namespace

bool takesOption(const Experiment& experiment, std::string_view key) {
    const OptionSpec* option = findOption(key);
    return option != nullptr && optionApplies(*option, experiment.workload().name, experiment.isPlan());
}

Experiment edited(Experiment experiment, const std::vector<OptionEdit>& edits) {
    for (const OptionEdit& edit : edits) {
        experiment.set(edit.key, edit.value);
    }
    return experiment;
}

Experiment withContext(const Experiment& planned, std::int64_t context) {
    Experiment out = planned;
    if (takesOption(planned, "prompt_length")) {
        out.set("prompt_length", context);
    } else if (takesOption(planned, "prompt_tokens")) {
        out.set("prompt_tokens", std::to_string(context));
    }
    return out;
}

std::span<const std::string_view> inputOptions() {
    return kInputs;
}

std::optional<std::int64_t> contextOf(const Experiment& experiment) {
    for (const char* key : {"prompt_length", "sequence_length"}) {
        if (takesOption(experiment, key) && experiment.maybeInteger(key)) {
            return experiment.maybeInteger(key);
        }
    }
    if (takesOption(experiment, "prompt_tokens") &&
        (!experiment.has("trace") || isTraceRecipe(experiment.text("trace")))) {
        const std::string range = experiment.text("prompt_tokens"); // "16-256"
        const std::string last = range.substr(range.find('-') == std::string::npos ? 0 : range.find('-') + 1);
        std::int64_t out = 0;
        if (std::from_chars(last.data(), last.data() + last.size(), out).ec == std::errc() && out > 0) {
            return out;
        }
    }
    return std::nullopt;
}

Experiment plannedExperiment(const Experiment& experiment, std::int64_t context) {
    Experiment out = experiment.asPlan();
    for (const auto keys : {std::span<const std::string_view>(kInputs), std::span<const std::string_view>(kLeftOut)}) {
        for (const std::string_view key : keys) {
            if (takesOption(out, key)) {
                out.unset(key);
            }
        }
    }
    for (const char* key : {"max_context", "max_batch", "techniques"}) {
        if (takesOption(out, key)) {
            out.set(key, false);
        }
    }
    if (takesOption(out, "trace")) {
        out.set("trace", std::string("fixed")); // all requests are as long as the context
    }
    if (takesOption(out, "merge")) {
        out.set("merge", std::string("none"));
    }
    if (takesOption(out, "requests")) { // a full batch; the rest of a trace holds no more
        out.set("requests", std::min(out.integer("requests"), out.integer("slots")));
    }
    out.set("profile", std::string("off"));
    return withContext(out, context);
}

std::vector<PlanSetSpec> planSets(const Experiment& experiment) {
    if (takesOption(experiment, "tiled_mlp")) {
        return trainingSets(experiment);
    }
    if (!takesOption(experiment, "kv_dtype")) {
        return {{"as chosen", {}}};
    }
    return {{"bfloat16", {choice("kv_dtype", "bfloat16")}},
            {"fp8", {choice("kv_dtype", "fp8")}},
            {"int8", {choice("kv_dtype", "int8")}}};
}

std::vector<PlanSwitchSpec> planSwitches(const Experiment& experiment) {
    if (takesOption(experiment, "tiled_mlp")) {
        return trainingSwitches(experiment);
    }
    std::vector<PlanSwitchSpec> out;
    if (takesOption(experiment, "sliding_cache")) {
        out.push_back({"Sliding cache", {"sliding_cache", true}, {"sliding_cache", false}});
    }
    if (takesOption(experiment, "weights")) {
        out.push_back({"Packed weights", choice("weights", "quantized"), choice("weights", "dequantized")});
    }
    return out;
}

std::span<const std::string_view> planChoices(const Experiment& experiment) {
    static constexpr std::array<std::string_view, 3> kOfRollouts = {"method", "rollout", "qat"};
    return takesOption(experiment, "rollout") ? std::span<const std::string_view>(kOfRollouts)
                                              : std::span<const std::string_view>();
}

bool isOn(const Experiment& experiment, const PlanSwitchSpec& one) {
    if (const auto* on = std::get_if<bool>(&one.on.value)) {
        return experiment.flag(one.on.key) == *on;
    }
    const std::string now = experiment.text(one.on.key);
    return now == std::get<std::string>(one.on.value) || now == "auto";
}

} // namespace vitrine::engine
