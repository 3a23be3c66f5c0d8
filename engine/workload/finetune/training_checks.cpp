// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/training_checks.h"

#include <fmt/format.h>
#include <optional>

#include "base/error.h"
#include "engine/quant/conversion_target.h"
#include "engine/quant/format_options.h"
#include "engine/training/parameters/parameter_choice.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/finetune/finetune_run.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {

namespace {

void checkLossChunks(const Experiment& experiment, const std::string& name) {
    const std::string chunks = experiment.text("loss_chunks");
    const bool digits = !chunks.empty() && chunks.size() < 10 &&
                        chunks.find_first_not_of("0123456789") == std::string::npos && chunks != "0";
    if (chunks != "auto" && !digits) {
        failOption(name, "loss_chunks", fmt::format("\"{}\" is neither auto nor a number from 1", chunks));
    }
}

void checkAdapterOptions(const Experiment& experiment, const std::string& name) {
    const bool full = experiment.text("method") == "full";
    for (const char* key : {"alpha", "adapter"}) {
        if (full && experiment.has(key)) {
            failOption(name, key, "is for adapters; method full has none");
        }
    }
    if (full && experiment.flag("rslora")) {
        failOption(name, "rslora", "is for adapters; method full has none");
    }
    if (experiment.flag("merge_aware") && experiment.text("merge") == "bf16") {
        failOption(name, "merge_aware",
                   "trains for weights that are packed again; set merge to their format or to none");
    }
    if (full && experiment.real("dropout") > 0) {
        failOption(name, "dropout", "is for adapters; method full has none");
    }
    for (const char* key : {"alpha", "train"}) {
        if (experiment.has("adapter") && experiment.has(key)) {
            failOption(name, key, "is given beside adapter, which has its own; leave one of them out");
        }
    }
    if (experiment.has("adapter") && experiment.real("dropout") > 0) {
        failOption(name, "dropout", "is given beside adapter, which has its own; leave one of them out");
    }
    if (experiment.has("train")) {
        const ParameterChoice parsed(experiment.text("train"), name + ": train");
    }
}

/// Options that do nothing without qat, and what qat cannot do.
void checkQat(const Experiment& experiment, const std::string& name) {
    if (experiment.text("qat") == "none") {
        for (const char* key : {"group_size", "qat_weights", "int4_rule"}) {
            if (experiment.has(key)) {
                failOption(name, key, "is for quantization-aware training; give qat too, or leave it out");
            }
        }
        return;
    }
    if (experiment.flag("merge_aware")) {
        failOption(name, "merge_aware", "is qat in the format of the model's files; give one of the two");
    }
    if (const std::string qat = experiment.text("qat"); experiment.has("int4_rule") && !hasGroups(qat)) {
        failOption(name, "int4_rule", fmt::format("{} has one rule; leave the option out", qat));
    }
    const std::optional<std::int64_t> group = experiment.maybeInteger("group_size");
    if (group && !isGroupSize(*group)) {
        failOption(name, "group_size", fmt::format("must be a multiple of 8, or -1, and it is {}", *group));
    }
    if (experiment.has("qat_weights")) {
        const ParameterChoice parsed(experiment.text("qat_weights"), name + ": qat_weights");
    }
    try {
        qatPacking(experiment);
    } catch (const base::BadInput& error) {
        throw base::BadInput(fmt::format("{}: {}", name, error.message()));
    }
}

/// What is trained in the numbers of a format can be written in it, or dense.
void checkMerge(const Experiment& experiment, const std::string& name) {
    const std::string merge = experiment.text("merge"), qat = experiment.text("qat");
    if (experiment.text("method") == "qlora" && needsCopies(merge)) {
        failOption(name, "merge",
                   fmt::format("with qlora the adapter is beside packed weights, and {} would round their "
                               "sum, which was not trained; choose method lora, or bf16 and convert",
                               merge));
    }
    if (merge == "none" || (qat != "none" && merge == qat)) {
        return;
    }
    if (experiment.text("method") == "full") {
        failOption(name, "merge",
                   qat == "none" ? "is for adapters; method full has none"
                                 : fmt::format("the weights are trained as {}; choose it, or leave merge "
                                               "out, which saves the masters",
                                               qat));
    }
    if (qat != "none" && merge != "bf16") {
        failOption(name, "merge", fmt::format("the weights are trained as {}; choose it or bf16", qat));
    }
    if (qat == "none" && !experiment.flag("merge_aware") && needsCopies(merge)) {
        failOption(name, "merge",
                   fmt::format("weights are packed as {} while they are trained; give qat too, or choose bf16 and "
                               "convert the model",
                               merge));
    }
}

void checkOutput(const Experiment& experiment, const std::string& name) {
    if (experiment.has("output")) {
        return;
    }
    if (experiment.integer("keep_checkpoints") > 0) {
        failOption(name, "output", "missing; name the folder whose checkpoints are kept");
    }
    if (experiment.integer("save_every") > 0) {
        failOption(name, "output", "missing; name the folder that checkpoints go to");
    }
    if (experiment.text("merge") != "none") {
        failOption(name, "output", "missing; name the folder that the merged model goes to");
    }
}

} // namespace

void checkTraining(const Experiment& experiment, const std::string& name) {
    checkQat(experiment, name);
    checkLossChunks(experiment, name);
    checkAdapterOptions(experiment, name);
    checkOutput(experiment, name);
    checkMerge(experiment, name);
}

} // namespace vitrine::engine
