// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload rl: updates of a policy on answers.

#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "engine/checkpoint/output_check.h"
#include "engine/quant/format_options.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/run_speculation.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "engine/workload/finetune/training_checks.h"
#include "engine/workload/rl/exact_mode.h"
#include "engine/workload/rl/problem_choice.h"
#include "engine/workload/rl/rl_loop.h"
#include "engine/workload/rl/rl_plan.h"
#include "engine/workload/rl/rl_run.h"
#include "engine/workload/rl/rl_text.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 9> kRlResults = {result::kRunSet,      result::kMemorySet, result::kLoadingSet,
                                                 result::kKernelSet,   result::kPlanSet,   result::kRateSet,
                                                 result::kTrainingSet, result::kPolicySet, result::kRolloutSet};

/// Those of finetune that say how tensors are trained, and how answers are sampled.
constexpr auto kRlSharedKeys =
    withSpeculationKeys(std::to_array<std::string_view>({"group_size",     "int4_rule",  "batch",
                                                         "output",         "adapter",    "method",
                                                         "train",          "rank",       "alpha",
                                                         "rslora",         "qat",        "qat_weights",
                                                         "steps",          "lr",         "warmup_steps",
                                                         "schedule",       "lr_minimum", "weight_decay",
                                                         "clip_norm",      "optimizer",  "checkpoint",
                                                         "loss_chunks",    "tiled_mlp",  "merge",
                                                         "save_gradients", "save_every", "keep_checkpoints",
                                                         "overwrite",      "resume",     "data",
                                                         "eval_data",      "eval_every", "prompt_length",
                                                         "kv_dtype"}));
/// checkpoint is unset: rl makes its micro-batches itself, mostly of a size whose activations fit.
/// Filters are off, so that answers come from the policy itself, whatever the model's generation_config says.
constexpr std::array<WorkloadDefault, 7> kRlDefaults{{{"temperature", "1"},
                                                      {"checkpoint", ""},
                                                      {"top_k", "0"},
                                                      {"top_p", "1"},
                                                      {"min_p", "0"},
                                                      {"repetition_penalty", "1"},
                                                      {"slots", "256"}}};
constexpr std::array<std::string_view, 5> kRlViews = {"run", "kv-cache", "batching", "rl", "compare"};

constexpr std::array<WorkloadOutput, 2> kRlOutputs{
    {{"output", nullptr, false, "overwrite", "resume"}, {"save_gradients", &kGradientsOutput}}};

constexpr std::array kRlOptions = {
    OptionSpec{"task", OptionType::Text, "", "", 0, 0, "", "", "Problems",
               "Problems that come with the program, with a checker: sums, sorting, brackets, letters or format"},
    OptionSpec{"difficulty", OptionType::Integer, "1", "", 1, 10, "", "", "Problems",
               "How hard the problems of a task are"},
    OptionSpec{"checker", OptionType::Choice, "", "", 0, 0, "exact|number|regex|choice|math", "", "Problems",
               "How answers to problems of data are judged by the answer of their row"},
    OptionSpec{"reward_command", OptionType::Text, "", "", 0, 0, "", "", "Problems",
               "A program that reads answers as JSON lines and prints a number for each, instead of a checker"},
    OptionSpec{"turns", OptionType::Integer, "1", "", 1, 64, "", "", "Problems",
               "Answers in a conversation at most: the reward command may reply with the user's next message"},
    OptionSpec{"reward_processes", OptionType::Integer, "4", "", 1, 256, "", "", "Problems",
               "How many of this program run at the same time"},
    OptionSpec{"reward_timeout", OptionType::Real, "30", "", 0.01, 86400, "", "seconds", "Problems",
               "Time that this program has for an answer"},
    OptionSpec{"reward_memory", OptionType::Bytes, "4GiB", "", 0, kMaxBytes, "", "bytes", "Problems",
               "Memory that one of them may hold with its children; 0: no limit"},
    OptionSpec{"eval_problems", OptionType::Integer, "64", "", 0, 100000, "", "", "Problems",
               "Problems of an evaluation, which training does not ask"},
    OptionSpec{"prompts", OptionType::Integer, "16", "", 1, 65536, "", "", "Rollouts", "Problems asked in a step"},
    OptionSpec{"samples", OptionType::Integer, "8", "", 2, 4096, "", "", "Rollouts",
               "Answers to each problem, which are compared with each other"},
    OptionSpec{"rollout", OptionType::Choice, "", "", 0, 0, kRolloutChoices, "", "Rollouts",
               "Weights that answers are sampled with; unset: as qat, else as they are trained"},
    OptionSpec{"partial_tokens", OptionType::Integer, "0", "", 0, kMaxCount, "", "tokens", "Rollouts",
               "New tokens of an answer in one step at most; longer ones go on in the next step, with its weights; 0: "
               "all"},
    OptionSpec{"router_replay", OptionType::Bool, "false", "", 0, 0, "", "", "Rollouts",
               "Train a mixture of experts with the experts that each token was sampled with"},
    OptionSpec{
        "exact", OptionType::Bool, "false", "", 0, 0, "", "", "Rollouts",
        "Sample and train with kernels that make each row alone, in one order of sums: log-probabilities of both "
        "are equal to the bit, and steps take longer"},
    OptionSpec{"dynamic_sampling", OptionType::Bool, "false", "", 0, 0, "", "", "Rollouts",
               "Ask other problems instead of those whose answers all have the same reward"},
    OptionSpec{"cut_answers", OptionType::Choice, "keep", "", 0, 0, "keep|mask|penalise", "", "Policy",
               "Answers that were too long count as others, are not trained, or lose cut_penalty"},
    OptionSpec{"cut_penalty", OptionType::Real, "0.5", "", 0, 1000, "", "", "Policy",
               "With cut_answers penalise: what an answer that was too long loses"},
    OptionSpec{
        "rollouts", OptionType::Path, "", "", 0, 0, "", "", "Policy",
        "safetensors file of answers: input_ids, prompt_lengths, lengths, advantages or rewards with groups, and "
        "log-probabilities"},
    OptionSpec{"updates", OptionType::Integer, "1", "", 1, 10000, "", "", "Policy",
               "Updates on the same answers, each over all of them"},
    OptionSpec{"clip_low", OptionType::Real, "0.2", "", 0, 1, "", "", "Policy",
               "How far the ratio of new and old probabilities counts below 1"},
    OptionSpec{"clip_high", OptionType::Real, "0.28", "", 0, 1000, "", "", "Policy",
               "How far the ratio of new and old probabilities counts above 1"},
    OptionSpec{"kl", OptionType::Real, "0", "", 0, 1000, "", "", "Policy",
               "Coefficient of the KL divergence from the reference: the file's, else the model as it was before"},
    OptionSpec{"importance_cap", OptionType::Real, "2", "", 0, 1e6, "", "", "Policy",
               "Largest weight of a token for which the sampler's probability differs from the model's; 0: no weights"},
    OptionSpec{"aggregation", OptionType::Choice, "token", "", 0, 0, "token|sequence", "", "Policy",
               "The loss is the mean over all tokens of answers, or over answers of the means over their tokens"},
    OptionSpec{"share_prompts", OptionType::Bool, "true", "", 0, 0, "", "", "Memory",
               "Answers to the same prompt pass the model with one copy of it"},
};

void runRl(const Run& run) {
    const ModelSource source = openSource(run);
    if (!run.spec.has("rollouts")) {
        const RunDevices context = makeContext(run);
        runMeasured(run, *context,
                    [&] { withPolicyLoop(run, source, *context, [](PolicyLoop& loop) { loop.run(); }); });
        return;
    }
    const Rollouts rollouts = givenRollouts(run, source);
    const RunDevices context = makeContext(run);
    runMeasured(run, *context, [&] {
        FinetuneModel model(run, source, *context);
        PolicyBatches batches = optionBatches(run, rollouts);
        PolicyUpdates(run, source, model, rollouts, batches).run();
    });
}

/// What only sampled answers have, beside the sets of options of sampling.
constexpr std::array<std::string_view, 23> kSamplingKeys = {
    "turns",          "router_replay",    "task",        "difficulty",  "checker",
    "reward_command", "eval_problems",    "prompts",     "samples",     "rollout",
    "partial_tokens", "dynamic_sampling", "cut_answers", "cut_penalty", "reward_processes",
    "reward_timeout", "reward_memory",    "steps",       "data",        "eval_data",
    "eval_every",     "prompt_length",    "exact"};
constexpr std::uint32_t kSamplingSets = kAnswerOptions | kTextOptions | kBatchingOptions;

/// Whether the option has another value than where nobody gives it.
bool isChosen(const Experiment& experiment, std::string_view key) {
    Experiment usual = experiment;
    usual.unset(key);
    return experiment.valueText(key) != usual.valueText(key);
}

/// Given answers are not sampled: what says how to sample does nothing.
void refuseSamplingOptions(const Experiment& experiment, const std::string& name) {
    const auto refuse = [&](const OptionSpec& option) {
        if (isChosen(experiment, option.key)) {
            failOption(name, option.key, "is for answers that are sampled, and rollouts gives them; leave it out");
        }
    };
    for (const std::string_view key : kSamplingKeys) {
        refuse(*findOption(key));
    }
    for (const OptionSpec& option : optionTable()) {
        if ((option.sets & kSamplingSets) != 0 && option.key != "temperature") {
            refuse(option);
        }
    }
}

/// Options of sampled answers that do nothing without another one.
void refuseIdleOptions(const Experiment& experiment, const std::string& name) {
    struct Dependent {
        std::string_view key;
        bool counts;
        const char* what;
    };
    constexpr const char* kForCommand = "is for a reward_command; give one, or leave it out";
    constexpr const char* kForEvaluations = "is for evaluations, and there are none; give eval_every too, or leave it "
                                            "out";
    const bool judged = experiment.has("reward_command"), evaluates = experiment.integer("eval_every") > 0;
    const std::array rows = std::to_array<Dependent>({
        {"turns", judged, kForCommand},
        {"reward_processes", judged, kForCommand},
        {"reward_timeout", judged, kForCommand},
        {"reward_memory", judged, kForCommand},
        {"difficulty", experiment.has("task"), "is for problems of a task; leave it out"},
        {"eval_problems", evaluates, kForEvaluations},
        {"eval_data", evaluates, kForEvaluations},
        {"eval_every", experiment.integer("eval_problems") > 0,
         "evaluates nothing, because eval_problems is 0; leave "
         "one of them out"},
        {"cut_penalty", experiment.text("cut_answers") == "penalise",
         "counts with cut_answers penalise only; give that too, or leave it out"},
    });
    for (const Dependent& row : rows) {
        if (!row.counts && isChosen(experiment, row.key)) {
            failOption(name, row.key, row.what);
        }
    }
}

void checkRl(const Experiment& experiment, const std::string& name) {
    for (const char* key : {"max_context", "max_batch"}) {
        if (experiment.has("rollouts") && experiment.isPlan() && experiment.flag(key)) {
            failOption(name, key, "searches for answers that are sampled, and rollouts gives them; leave it out");
        }
    }
    if (experiment.has("rollouts")) {
        refuseSamplingOptions(experiment, name);
    } else {
        checkProblems(experiment, name);
        refuseIdleOptions(experiment, name);
        checkSpeculation(experiment, name);
    }
    if (experiment.real("temperature") <= 0) {
        failOption(name, "temperature", "is 0, which leaves one token possible; give the one that samples the answers");
    }
    checkExact(experiment, name);
    checkTraining(experiment, name);
}

std::string rlName(const Experiment& experiment) {
    const std::string asks = experiment.has("rollouts") ? "given answers"
                             : experiment.has("task")   ? experiment.text("task")
                             : experiment.has("data")
                                 ? std::filesystem::path(experiment.text("data")).filename().string()
                                 : "arbitrary prompts";
    return fmt::format("rl, {}, {}, {}", asks, experiment.text("method"), modelName(experiment));
}

} // namespace

constinit const Workload kRlWorkload = {
    .name = "rl",
    .title = "RL",
    .optionSets = kModelOptions | kWeightsOptions | kDeviceOptions | kRunOptions | kSamplingSets,
    .optionKeys = kRlSharedKeys,
    .ownOptions = kRlOptions,
    .defaults = kRlDefaults,
    .outputs = kRlOutputs,
    .check = checkRl,
    .searches = true,
    .run = runRl,
    .plan = planRl,
    .planHelp = "Memory and time of an update of a policy",
    .planExample = "vitrine plan rl --model ./my-model --rollouts answers.safetensors --method lora --json",
    .results = kRlResults,
    .runName = rlName,
    .resultText = rlText,
    .formView = "run",
    .formPlace = 5,
    .views = kRlViews,
};

} // namespace vitrine::engine
