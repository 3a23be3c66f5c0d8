// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload rl: updates of a policy on answers.

#include <array>
#include <fmt/format.h>
#include <memory>

#include "engine/checkpoint/output_check.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "engine/workload/finetune/finetune_plan.h"
#include "engine/workload/finetune/training_checks.h"
#include "engine/workload/rl/rl_run.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 8> kRlResults = {result::kRunSet,      result::kMemorySet, result::kLoadingSet,
                                                 result::kKernelSet,   result::kPlanSet,   result::kRateSet,
                                                 result::kTrainingSet, result::kPolicySet};

/// Those of finetune that say how tensors are trained, not on what.
constexpr std::array<std::string_view, 29> kRlSharedKeys = {
    "group_size",   "int4_rule", "batch",      "output",         "adapter",    "temperature",      "method",
    "train",        "rank",      "alpha",      "rslora",         "qat",        "qat_weights",      "lr",
    "warmup_steps", "schedule",  "lr_minimum", "weight_decay",   "clip_norm",  "optimizer",        "checkpoint",
    "loss_chunks",  "tiled_mlp", "merge",      "save_gradients", "save_every", "keep_checkpoints", "overwrite",
    "resume"};
/// checkpoint is unset: rl makes its micro-batches itself, mostly of a size whose activations fit.
constexpr std::array<WorkloadDefault, 2> kRlDefaults{{{"temperature", "1"}, {"checkpoint", ""}}};
constexpr std::array<std::string_view, 2> kRlViews = {"run", "compare"};

constexpr std::array<WorkloadOutput, 2> kRlOutputs{
    {{"output", nullptr, false, "overwrite", "resume"}, {"save_gradients", &kGradientsOutput}}};

constexpr std::array kRlOptions = {
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
    const Rollouts rollouts = givenRollouts(run, source);
    const std::unique_ptr<kernels::Context> context = makeContext(run);
    runMeasured(run, *context, [&] {
        FinetuneModel model(run, source, *context);
        PolicyBatches batches = givenBatches(run, rollouts);
        PolicyUpdates(run, source, model, rollouts, batches).run();
    });
}

void planRl(const Run& run) {
    const ModelSource source = openSource(run);
    const Rollouts rollouts = givenRollouts(run, source);
    Experiment spec = run.spec;
    // Of two updates the second one has all that any has: log-probabilities of the first are kept for it.
    spec.set("updates", std::min<std::int64_t>(run.spec.integer("updates"), 2));
    spec.set("save_every", std::int64_t{0});
    addPlannedStep(Run{spec, run.sinks, run.stop, run.metrics}, *makePlanContext(run, run.sinks.trace),
                   [&](const Run& once, kernels::Context& meta) {
                       FinetuneModel model(once, source, meta);
                       PolicyBatches batches = givenBatches(once, rollouts);
                       PolicyUpdates updates(once, source, model, rollouts, batches);
                       updates.run();
                       return updates.stepSeconds();
                   });
}

void checkRl(const Experiment& experiment, const std::string& name) {
    requireOption(experiment, name, "rollouts", "name the file of answers to train on");
    if (experiment.real("temperature") <= 0) {
        failOption(name, "temperature", "is 0, which leaves one token possible; give the one that sampled the answers");
    }
    checkTraining(experiment, name);
}

std::string rlName(const Experiment& experiment) {
    return fmt::format("rl, {}, {}", experiment.text("method"), experiment.text("model"));
}

} // namespace

constinit const Workload kRlWorkload = {
    .name = "rl",
    .title = "Reinforcement learning",
    .optionSets = kModelOptions | kWeightsOptions | kDeviceOptions | kRunOptions,
    .optionKeys = kRlSharedKeys,
    .ownOptions = kRlOptions,
    .defaults = kRlDefaults,
    .outputs = kRlOutputs,
    .check = checkRl,
    .run = runRl,
    .plan = planRl,
    .planHelp = "Memory and time of an update of a policy",
    .planExample = "vitrine plan rl --model ./my-model --rollouts answers.safetensors --method lora --json",
    .results = kRlResults,
    .runName = rlName,
    .views = kRlViews,
};

} // namespace vitrine::engine
