// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/resume_terms.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "base/log.h"
#include "engine/chat/chat_template.h"
#include "engine/quant/format_options.h"
#include "engine/training/files/input_digest.h"
#include "engine/training/files/training_checkpoint.h"
#include "engine/training/quantized/quantized_training.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/finetune/finetune_run.h"
#include "kernels/core/dtype.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 61> kSameOptions = {"method",
                                                           "train",
                                                           "rank",
                                                           "alpha",
                                                           "rslora",
                                                           "merge_aware",
                                                           "qat",
                                                           "group_size",
                                                           "qat_weights",
                                                           "int4_rule",
                                                           "weights",
                                                           "dtype",
                                                           "set",
                                                           "seed",
                                                           "batch",
                                                           "accumulate",
                                                           "prompt_length",
                                                           "sequence_length",
                                                           "pack",
                                                           "long_rows",
                                                           "long_row_exceptions",
                                                           "duplicates",
                                                           "shuffle",
                                                           "validation",
                                                           "chat_format",
                                                           "chat_template_kwargs",
                                                           "date",
                                                           "optimizer",
                                                           "clip_low",
                                                           "clip_high",
                                                           "kl",
                                                           "importance_cap",
                                                           "aggregation",
                                                           "temperature",
                                                           "task",
                                                           "difficulty",
                                                           "checker",
                                                           "turns",
                                                           "prompts",
                                                           "samples",
                                                           "rollout",
                                                           "exact",
                                                           "partial_tokens",
                                                           "dynamic_sampling",
                                                           "router_replay",
                                                           "cut_answers",
                                                           "cut_penalty",
                                                           "max_new_tokens",
                                                           "top_k",
                                                           "top_p",
                                                           "min_p",
                                                           "repetition_penalty",
                                                           "frequency_penalty",
                                                           "presence_penalty",
                                                           "stop",
                                                           "ignore_eos",
                                                           "raw",
                                                           "system",
                                                           "tools",
                                                           "reasoning_effort",
                                                           "enable_thinking"};
constexpr std::array<std::string_view, 10> kBranchOptions = {
    "kv_dtype",     "lr",        "warmup_steps", "schedule",        "lr_minimum",
    "weight_decay", "clip_norm", "dropout",      "router_aux_loss", "reward_command"};
constexpr std::array<std::string_view, 7> kContentOptions = {"model",     "data",    "tokens_file",  "rollouts",
                                                             "eval_data", "adapter", "chat_template"};
constexpr std::size_t kShownDigest = 12;

bool takes(const Experiment& spec, std::string_view key) {
    const OptionSpec* option = findOption(key);
    return option != nullptr && optionApplies(*option, spec.workload().name, spec.isPlan());
}

bool hasText(const Experiment& spec) {
    return spec.has("data") || spec.has("eval_data");
}

/// Whether an option of quantization-aware training says what it would be without being given. Of a model that is
/// packed already the usual group and rule are its own.
bool saysUsual(const Run& run, const Model& model, std::string_view key) {
    const bool packed =
        std::ranges::any_of(model.parameters(), [](const Parameter& parameter) { return parameter.view.quantized(); });
    if (key == "qat_weights") {
        return run.spec.text(key) == QuantizedTraining::usualWeights(model.parameters());
    }
    return !packed && (key == "group_size" ? run.spec.maybeInteger(key) == kQatInt4Group
                                           : key == "int4_rule" && run.spec.text(key) == kQatInt4Rule);
}

/// The value of an option as the run takes it: with the defaults that depend on other options.
std::string valueOf(const Run& run, FinetuneModel& model, const TrainedRows& rows, std::string_view key) {
    const bool full = finetuneMethod(run.spec) == FinetuneMethod::Full;
    const bool continues = run.spec.has("adapter");
    if (key == "dtype") {
        return std::string(kernels::dtypeName(model.model().options().computeDType));
    }
    if (key == "qat" && run.spec.text(key) == "none") {
        return ""; // as trainings of older versions say it
    }
    if (saysUsual(run, model.model(), key)) {
        return "";
    }
    if (key == "batch") {
        return std::to_string(rows.microBatch);
    }
    if (key == "alpha") {
        return full ? "" : fmt::format("{:g}", model.adapterConfig().alpha);
    }
    if (key == "rank" && !full) {
        return std::to_string(model.adapterConfig().rank);
    }
    if (key == "train" && !run.spec.has("train")) {
        return full ? "all" : continues ? "" : "attention";
    }
    if (key == "date") {
        return !hasText(run.spec) ? "" : run.spec.has("date") ? run.spec.text("date") : run.today;
    }
    return run.spec.valueText(key);
}

std::string contentsOf(const Run& run, const std::string& key) {
    const std::string path = run.spec.text(key);
    return path.empty() ? "" : key == "adapter" ? adapterDigest(path, run.stop) : fileDigest(path, run.stop);
}

std::string words(const std::string& value) {
    return value.empty() ? "none" : value;
}

[[noreturn]] void failOptionOf(const std::string& checkpoint, std::string_view key, const std::string& before,
                               const std::string& now, bool mayBranch) {
    const std::string flag = optionFlag(key);
    const std::string same =
        before.empty() ? fmt::format("leave {} out", flag) : fmt::format("give {} {}", flag, before);
    throw base::BadInput(fmt::format(
        "{}: was trained with {} {}, and this run has {}; {}, {}", checkpoint, flag, words(before), words(now), same,
        mayBranch ? "or another --output, as a branch" : "or train from the beginning without --resume"));
}

void compareOption(const Json& before, const Json& now, std::string_view option, const std::string& checkpoint,
                   bool branch) {
    const std::string key(option);
    const std::string was = base::textAt(before, key.c_str()), is = base::textAt(now, key.c_str());
    if (!before.contains(key) || was == is) {
        return;
    }
    const bool mayBranch = resumeRule(key) == ResumeRule::OfBranch;
    if (!mayBranch || !branch) {
        failOptionOf(checkpoint, key, was, is, mayBranch);
    }
    base::logWarning(fmt::format("{}: was trained with {} {}; the branch goes on with {}", checkpoint, optionFlag(key),
                                 words(was), words(is)));
}

/// In the order of the tables: others follow from the first ones.
void compareOptions(const Json& before, const Json& now, const std::string& checkpoint, bool branch) {
    for (const std::string_view key : kSameOptions) {
        compareOption(before, now, key, checkpoint, branch);
    }
    for (const std::string_view key : kBranchOptions) {
        compareOption(before, now, key, checkpoint, branch);
    }
}

void compareContents(const Json& before, const Json& now, const std::string& checkpoint) {
    for (const auto& [key, value] : now.items()) {
        const Json old = before.contains(key) && before[key].is_object() ? before[key] : Json::object();
        const std::string name = base::textAt(old, "name"), is = base::textAt(value, "name");
        if (name.empty() != is.empty()) {
            failOptionOf(checkpoint, key, name, is, false);
        }
        for (const char* part : {"config", "contents"}) {
            const std::string was = base::textAt(old, part), has = base::textAt(value, part);
            if (was != has) {
                const std::string_view what = std::string_view(part) == "config" ? "another config" : "other contents";
                throw base::BadInput(fmt::format(
                    "{}: was trained with {} {}, and {} has {} (SHA-256 {}, not {}); give it as it was, or train from "
                    "the beginning without --resume",
                    checkpoint, optionFlag(key), name, is, what, words(has.substr(0, kShownDigest)),
                    words(was.substr(0, kShownDigest))));
            }
        }
    }
}

std::int64_t countIn(const Json& terms) {
    return static_cast<std::int64_t>(base::bytesAt(terms, "steps").value_or(0));
}

/// Steps may change, but the rates of a schedule follow from them.
void compareSteps(const Json& before, const Json& now, const std::string& checkpoint) {
    const std::int64_t was = countIn(before), is = countIn(now);
    const std::string schedule = base::textAt(now["options"], "schedule");
    if (was != is && was > 0 && schedule != "constant") {
        base::logWarning(
            fmt::format("{}: was trained for {} steps in all; with {} the schedule {} has other rates from "
                        "here on than a run of {} from its beginning",
                        checkpoint, was, is, schedule, is));
    }
}

} // namespace

ResumeRule resumeRule(std::string_view option) {
    const auto isIn = [option](const auto& options) { return std::ranges::find(options, option) != options.end(); };
    return isIn(kSameOptions)      ? ResumeRule::Same
           : isIn(kBranchOptions)  ? ResumeRule::OfBranch
           : isIn(kContentOptions) ? ResumeRule::Contents
                                   : ResumeRule::Free;
}

std::string dayOfTraining(const Experiment& spec) {
    if (spec.has("resume")) {
        const Json progress = readTrainingProgress(findTrainingCheckpoint(spec.text("resume")));
        if (const Json terms = progress.value("terms", Json()); terms.is_object()) {
            if (std::string day = base::textAt(terms, "day"); !day.empty()) {
                return day;
            }
        }
    }
    return dayToday();
}

Json resumeTerms(const Run& run, const ModelSource& source, FinetuneModel& model, const TrainedRows& rows) {
    Json options = Json::object(), contents = Json::object();
    for (const std::string_view key : kSameOptions) {
        if (takes(run.spec, key)) {
            options[std::string(key)] = valueOf(run, model, rows, key);
        }
    }
    for (const std::string_view key : kBranchOptions) {
        if (takes(run.spec, key)) {
            options[std::string(key)] = run.spec.valueText(key);
        }
    }
    for (const std::string_view view : kContentOptions) {
        const std::string key(view);
        if (!takes(run.spec, key)) {
            continue;
        }
        contents[key] = key == "model" ? Json{{"name", source.name},
                                              {"config", jsonDigest(source.configText)},
                                              {"contents", weightsDigest(source, run.stop)}}
                                       : Json{{"name", run.spec.text(key)}, {"contents", contentsOf(run, key)}};
    }
    return {
        {"options", options}, {"contents", contents}, {"rows", rows.digest}, {"steps", rows.steps}, {"day", run.today}};
}

void checkResumeTerms(const Json& before, const Json& now, const std::string& checkpoint, bool branch) {
    if (!before.is_object() || !before.contains("options") || !before.contains("contents") ||
        !before["options"].is_object() || !before["contents"].is_object()) {
        base::logWarning(checkpoint + ": does not say what it was trained with, as one of an earlier version; whether "
                                      "the options, the data and the model are the same is not known");
        return;
    }
    compareContents(before["contents"], now["contents"], checkpoint);
    compareOptions(before["options"], now["options"], checkpoint, branch);
    if (const std::string rows = base::textAt(before, "rows"); !rows.empty() && rows != base::textAt(now, "rows")) {
        throw base::BadInput(fmt::format(
            "{}: was trained with --data whose rows had other tokens (SHA-256 {}, not {}), although the files and "
            "options "
            "are the same; give the tokenizer and the chat template of the model as they were, or train from the "
            "beginning without --resume",
            checkpoint, rows.substr(0, kShownDigest), base::textAt(now, "rows").substr(0, kShownDigest)));
    }
    compareSteps(before, now, checkpoint);
}

} // namespace vitrine::engine
