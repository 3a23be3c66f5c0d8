// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload finetune: full fine-tuning, LoRA, QLoRA.

#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/quant/conversion_target.h"
#include "engine/quant/format_options.h"
#include "engine/training/data/data_rows.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "engine/workload/finetune/finetune_plan.h"
#include "engine/workload/finetune/finetune_run.h"
#include "engine/workload/finetune/finetune_save.h"
#include "engine/workload/finetune/resume_terms.h"
#include "engine/workload/finetune/training_checks.h"
#include "kernels/context/context.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 7> kFinetuneResults = {result::kRunSet,     result::kMemorySet, result::kLoadingSet,
                                                       result::kKernelSet,  result::kPlanSet,   result::kRateSet,
                                                       result::kTrainingSet};

using Json = nlohmann::json;

constexpr std::array<std::string_view, 11> kFinetuneSharedKeys = {
    "group_size",  "int4_rule", "tokens_file",   "prompt_length",       "batch", "output", "adapter",
    "chat_format", "date",      "chat_template", "chat_template_kwargs"};
constexpr std::array<std::string_view, 3> kFinetuneViews = {"run", "fine-tune", "compare"};

constexpr std::array<WorkloadOutput, 2> kFinetuneOutputs{
    {{"output", nullptr, false, "overwrite", "resume"}, {"save_gradients", &kGradientsOutput}}};

constexpr std::array kFinetuneOptions = {
    OptionSpec{"method", OptionType::Choice, "lora", "", 0, 0, "full|lora|qlora", "", "Training",
               "What is trained: the weights, an adapter, or an adapter over packed weights"},
    OptionSpec{"train", OptionType::Text, "", "", 0, 0, "", "", "Training",
               "Parameters, joined by +: attention, experts, mlp, all-linear, router, embedding, head, norms, all or "
               "re:PATTERN; unset: attention, and all with method full"},
    OptionSpec{"rank", OptionType::Integer, "16", "", 1, 4096, "", "", "Training", "Rank of the adapter"},
    OptionSpec{"alpha", OptionType::Real, "", "", 0, 1e6, "", "", "Training",
               "The adapter's result is multiplied by alpha / rank; unset: 2 rank"},
    OptionSpec{"rslora", OptionType::Bool, "false", "", 0, 0, "", "", "Training",
               "Rank-stabilised: multiply by alpha / sqrt(rank) instead"},
    OptionSpec{"dropout", OptionType::Real, "0", "", 0, 0.99, "", "", "Training",
               "Share of the adapter's input that is dropped while it is trained, in other places each step"},
    OptionSpec{"merge_aware", OptionType::Bool, "false", "", 0, 0, "", "", "Training",
               "Compute with weights that are rounded as the saved or merged model will have them packed"},
    OptionSpec{"qat", OptionType::Choice, "none", "", 0, 0, kQatChoices, "", "Training", kQatHelp},
    OptionSpec{"qat_weights", OptionType::Text, "", "", 0, 0, "", "", "Training",
               "With qat: the weights that are quantized, as train names them; unset: experts, and all-linear of a "
               "model without experts; routers, the embedding and the head never are"},
    OptionSpec{
        "data", OptionType::Path, "", "", 0, 0, "", "", "Training",
        "JSON Lines or one JSON array; each row has text, tokens, prompt and completion, messages, conversations "
        "(ShareGPT), or instruction and output (Alpaca); loss on answers and completions only"},
    OptionSpec{
        "sequence_length", OptionType::Integer, "", "", 2, kMaxCount, "", "tokens", "Training",
        "Rows are packed into sequences of this many tokens at most; unset: of the model's context, without cuts"},
    OptionSpec{"pack", OptionType::Bool, "true", "", 0, 0, "", "", "Training",
               "Put several rows of data into a sequence; no row sees another; false: a row is a sequence"},
    OptionSpec{"long_rows", OptionType::Choice, "cut", "", 0, 0, "cut|skip|keep-end", "", "Training",
               "Rows longer than sequence_length: cut their end, leave them out, or cut their beginning"},
    OptionSpec{"long_row_exceptions", OptionType::Text, "", "", 0, 0, "", "", "Training",
               "Long rows by line that differ from long_rows: 7731=keep-end+412=skip"},
    OptionSpec{"duplicates", OptionType::Choice, "leave-out", "", 0, 0, "leave-out|keep", "", "Training",
               "Rows of data with the token ids of an earlier row"},
    OptionSpec{"shuffle", OptionType::Bool, "true", "", 0, 0, "", "", "Training",
               "Take the rows of data in another order in each epoch; rows of a tokens file keep theirs"},
    OptionSpec{"validation", OptionType::Real, "0", "", 0, 0.9, "", "", "Training",
               "Share of the rows that is not trained, but evaluated"},
    OptionSpec{"eval_data", OptionType::Path, "", "", 0, 0, "", "", "Training",
               "Rows to evaluate, in a file like data"},
    OptionSpec{"epochs", OptionType::Integer, "1", "", 1, 1000000, "", "", "Training",
               "Passes over the data, where steps are not given"},
    OptionSpec{"steps", OptionType::Integer, "", "", 1, kMaxCount, "", "steps", "Training",
               "Steps of the optimizer; unset: those of the epochs"},
    OptionSpec{"lr", OptionType::Real, "0.0001", "", 0, 10, "", "", "Training", "Learning rate"},
    OptionSpec{"warmup_steps", OptionType::Integer, "0", "", 0, kMaxCount, "", "steps", "Training",
               "Steps in which the rate rises to lr"},
    OptionSpec{"schedule", OptionType::Choice, "constant", "", 0, 0, "constant|linear|cosine", "", "Training",
               "How the rate falls after the warm-up"},
    OptionSpec{"lr_minimum", OptionType::Real, "0", "", 0, 1, "", "", "Training",
               "Share of lr that linear and cosine end at"},
    OptionSpec{"weight_decay", OptionType::Real, "0.01", "", 0, 10, "", "", "Training", "Weight decay of AdamW"},
    OptionSpec{"clip_norm", OptionType::Real, "0", "", 0, 1e9, "", "", "Training",
               "Largest norm of all gradients together; 0: no clipping"},
    OptionSpec{"optimizer", OptionType::Choice, "adamw", "", 0, 0, "adamw|adamw8bit", "", "Training",
               "adamw8bit keeps the moments in a byte each"},
    OptionSpec{"router_aux_loss", OptionType::Real, "", "", 0, 100, "", "", "Training",
               "Coefficient of the load-balancing loss of experts; unset: the config's, where it asks for that loss"},
    OptionSpec{"accumulate", OptionType::Integer, "1", "", 1, 65536, "", "", "Training",
               "Micro-batches whose gradients make one step"},
    OptionSpec{
        "checkpoint", OptionType::Choice, "layer", "", 0, 0, "none|layer|offload", "", "Memory",
        "Gradient checkpointing: keep all activations, each layer's input, or the inputs in host memory; of rl, unset: "
        "all where they fit half of the free memory, else layer"},
    OptionSpec{"loss_chunks", OptionType::Text, "auto", "", 0, 0, "", "", "Memory",
               "Parts in which logits and loss are computed; auto: from the free memory; 1: all logits at once"},
    OptionSpec{"tiled_mlp", OptionType::Choice, "auto", "on", 0, 0, "auto|on|off", "", "Memory",
               "Run the MLP in ceil(sequence / hidden) tiles; auto: for long sequences"},
    OptionSpec{"techniques", OptionType::Bool, "false", "", 0, 0, "", "", "Search",
               "Price the step without memory techniques and with one more of them at a time", 0, true},
    OptionSpec{"merge", OptionType::Choice, "none", "", 0, 0, kMergeChoices, "", "Run", kMergeHelp},
    OptionSpec{"save_gradients", OptionType::Path, "", "", 0, 0, "", "", "Run",
               "safetensors file that receives the gradients of the first step"},
    OptionSpec{"eval_every", OptionType::Integer, "0", "", 0, kMaxCount, "", "steps", "Run",
               "Evaluate the validation rows every so many steps; 0: never"},
    OptionSpec{"save_every", OptionType::Integer, "0", "", 0, kMaxCount, "", "steps", "Run",
               "Write a checkpoint into output every so many steps; 0: never"},
    OptionSpec{"sample_prompts", OptionType::TextList, "", "", 0, 0, "", "", "Run",
               "Prompts that the model answers while it trains: a text, or a .jsonl file with prompt or messages in "
               "each line",
               0, false, true},
    OptionSpec{"sample_every", OptionType::Integer, "0", "", 0, kMaxCount, "", "steps", "Run",
               "Answer the sample prompts every so many steps, and before the first and after the last one; 0: only "
               "then"},
    OptionSpec{"sample_tokens", OptionType::Integer, "64", "", 1, 65536, "", "tokens", "Run",
               "Tokens of an answer to a sample prompt at most"},
    OptionSpec{"keep_checkpoints", OptionType::Integer, "0", "", 0, kMaxCount, "", "", "Run",
               "How many of the latest checkpoints stay in output; 0: all"},
    OptionSpec{"overwrite", OptionType::Bool, "false", "", 0, 0, "", "", "Run",
               "Replace what an earlier training left in output"},
    OptionSpec{"resume", OptionType::Path, "", "", 0, 0, "", "", "Run",
               "Go on from a checkpoint, or from the latest one of an output folder"},
};

void runFinetune(const Run& asked) {
    // A training that goes on after midnight has the prompts that it began with.
    const Run run{asked.spec, asked.sinks, asked.stop, asked.metrics, dayOfTraining(asked.spec), asked.locks};
    const ModelSource source = openSource(run);
    FinetuneData data(run, source);
    const RunDevices context = makeContext(run);
    runMeasured(run, *context, [&] {
        FinetuneModel model(run, source, *context);
        FinetuneLoop loop(run, source, model, data);
        loop.run();
    });
}

void checkInputs(const Experiment& experiment, const std::string& name) {
    const int inputs = (experiment.has("tokens_file") ? 1 : 0) + (experiment.has("data") ? 1 : 0) +
                       (experiment.has("prompt_length") ? 1 : 0);
    const bool searches = experiment.isPlan() && experiment.flag("max_context");
    if (inputs > 1) {
        failOption(name, "data", "more than one of data, tokens_file and prompt_length is given; choose one");
    }
    if (inputs == 0 && !searches) {
        failOption(name, "data", "missing; name the data to train on, or a prompt_length of arbitrary tokens");
    }
    if (experiment.integer("eval_every") > 0 && experiment.real("validation") <= 0 && !experiment.has("eval_data")) {
        failOption(name, "eval_every", "there is nothing to evaluate; give validation or eval_data");
    }
}

void checkLongRows(const Experiment& experiment, const std::string& name) {
    parseLongRowExceptions(experiment.text("long_row_exceptions"), name + ": long_row_exceptions");
    if (experiment.has("long_row_exceptions") && !experiment.has("sequence_length")) {
        failOption(name, "long_row_exceptions", "no row is too long without sequence_length; give one");
    }
}

void checkFinetune(const Experiment& experiment, const std::string& name) {
    checkInputs(experiment, name);
    checkLongRows(experiment, name);
    checkTraining(experiment, name);
    if (experiment.integer("sample_every") > 0 && experiment.texts("sample_prompts").empty()) {
        failOption(name, "sample_every", "there is nothing to answer; give sample_prompts");
    }
}

std::string finetuneName(const Experiment& experiment) {
    return fmt::format("{}, {}", experiment.text("method"), experiment.text("model"));
}

} // namespace

constinit const Workload kFinetuneWorkload = {
    .name = "finetune",
    .title = "Fine-tune",
    .optionSets = kModelOptions | kWeightsOptions | kDeviceOptions | kRunOptions,
    .optionKeys = kFinetuneSharedKeys,
    .ownOptions = kFinetuneOptions,
    .outputs = kFinetuneOutputs,
    .check = checkFinetune,
    .searches = true,
    .run = runFinetune,
    .plan = planFinetune,
    .planHelp = "Memory and time of a step of fine-tuning",
    .planExample = "vitrine plan finetune --model synthetic:gpt-oss-20b --train attention+experts --checkpoint offload "
                   "--vram-budget 80GiB --max-context --json",
    .results = kFinetuneResults,
    .runName = finetuneName,
    .views = kFinetuneViews,
};

} // namespace vitrine::engine
