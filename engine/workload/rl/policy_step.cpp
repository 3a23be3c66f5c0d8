// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/policy_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/training/passes/log_prob_objective.h"
#include "engine/workload/rl/exact_mode.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

/// As the sampler has it.
double temperatureOf(const Run& run) {
    return static_cast<double>(static_cast<float>(run.spec.real("temperature")));
}

PolicyOptions policyOptions(const Run& run, const PolicyBatches& batches, const PolicyStepOptions& options) {
    PolicyOptions out;
    out.clipLow = run.spec.real("clip_low");
    out.clipHigh = run.spec.real("clip_high");
    out.klCoefficient = run.spec.real("kl");
    out.importanceCap = run.spec.real("importance_cap");
    out.temperature = temperatureOf(run);
    const PolicyTokens& known = batches.tokens.front();
    out.rememberOld = options.remembers && known.old.empty();
    out.rememberReference = options.remembers && !options.referenceIsBase && known.reference.empty();
    return out;
}

/// A value of a file, and how far it is from what the model says.
struct FarLogProb {
    std::string tensor;
    std::int64_t row = 0, token = 0;
    float given = 0, model = 0;

    double distance() const { return std::fabs(static_cast<double>(given) - static_cast<double>(model)); }
};

/// The value that is farthest from `model`, (rows, width).
FarLogProb farthest(const Rollouts& rollouts, const std::vector<float>& model) {
    FarLogProb out;
    for (const auto& [name, values] :
         {std::pair{"old_logprobs", &rollouts.old}, std::pair{"rollout_logprobs", &rollouts.rollout},
          std::pair{"reference_logprobs", &rollouts.reference}}) {
        for (std::int64_t row = 0; row < rollouts.rows && !values->empty(); ++row) {
            const auto at = static_cast<std::size_t>(row);
            for (std::int64_t token = rollouts.promptLengths[at]; token < rollouts.lengths[at]; ++token) {
                const auto place = static_cast<std::size_t>(row * rollouts.width + token);
                const FarLogProb here{name, row, token, (*values)[place], model[place]};
                if (here.distance() > out.distance()) {
                    out = here;
                }
            }
        }
    }
    return out;
}

} // namespace

PolicyBatches optionBatches(const Run& run, const Rollouts& rollouts) {
    PolicyBatchOptions options;
    options.aggregation = run.spec.text("aggregation") == "sequence" ? Aggregation::Sequence : Aggregation::Token;
    options.sharePrompts = sharesPrompts(run.spec);
    options.rows = run.spec.maybeInteger("batch").value_or(0);
    return policyBatches(rollouts, options);
}

PolicyStep::PolicyStep(const Run& run, FinetuneModel& model, Trainer& trainer, TrainingRun& training,
                       const Rollouts& rollouts, PolicyBatches& batches, PolicyStepOptions options)
    : run_(run), model_(model), trainer_(trainer), training_(training), rollouts_(rollouts), batches_(batches),
      options_(std::move(options)) {}

void PolicyStep::takeFirst(std::vector<float> first) {
    first_ = std::move(first);
    if (rollouts_.old.empty()) {
        setValues(batches_, first_, &PolicyTokens::old);
    }
    if (rollouts_.reference.empty() && !options_.referenceIsBase) {
        setValues(batches_, first_, &PolicyTokens::reference);
    }
}

void PolicyStep::begin() {
    if (options_.referenceIsBase && batches_.tokens.front().reference.empty()) {
        if (options_.initial != nullptr) {
            const InitialPause pause(*options_.initial);
            setValues(batches_, modelLogProbs(), &PolicyTokens::reference);
        } else {
            const UnquantizedWeights unquantized(model_);
            const AdapterPause pause(*model_.adapter());
            setValues(batches_, modelLogProbs(), &PolicyTokens::reference);
        }
    }
    objective_ = std::make_unique<PolicyObjective>(model_.model().context(), policyOptions(run_, batches_, options_),
                                                   batches_.tokens);
}

/// What the model says now, (rows, width).
std::vector<float> PolicyStep::modelLogProbs() {
    LogProbObjective scores(model_.model().context(), temperatureOf(run_));
    trainer_.evaluate(batches_.batches, scores);
    std::vector<std::vector<float>> values;
    values.reserve(batches_.batches.size());
    for (std::size_t batch = 0; batch < batches_.batches.size(); ++batch) {
        values.push_back(scores.scores(static_cast<std::int64_t>(batch)).logProbs);
    }
    return rolloutValues(rollouts_, batches_, values);
}

/// Log-probabilities of another model, or in other units, make ratios that are no numbers any more. Called before the
/// weights change, so that the sentence can say what the model says instead.
void PolicyStep::refuseFarLogProbs() {
    constexpr double kMostLoss = 1e30; // gradients are float32
    const double loss = objective_->loss();
    const PolicyMeans& means = objective_->means();
    if (std::fabs(loss) < kMostLoss && std::isfinite(means.kl) && std::isfinite(means.ratio) &&
        std::isfinite(means.mismatchK3)) {
        return;
    }
    const FarLogProb far = farthest(rollouts_, modelLogProbs());
    if (!far.tensor.empty() && !options_.file.empty()) {
        throw base::BadInput(fmt::format("{}: {}: row {}: token {}: {:g} is too far from the model's {:g}, so that "
                                         "their ratio is no number; give log-probabilities (natural logarithms) of "
                                         "this model, or leave the tensor out",
                                         options_.file, far.tensor, far.row, far.token, far.given, far.model));
    }
}

TrainingStep PolicyStep::update(std::int64_t number, const std::function<void()>& before) {
    const bool first = !std::exchange(updated_, true);
    const auto beforeUpdate = [&] {
        if (first && model_.model().context().can().computesValues) {
            refuseFarLogProbs();
        }
        if (before) {
            before();
        }
    };
    const TrainingStep step = training_.step(number, batches_.batches, *objective_, beforeUpdate);
    if (first) {
        firstMeans_ = objective_->means();
        rememberFirst();
    }
    return step;
}

bool PolicyStep::lacksValues() const {
    const PolicyTokens& known = batches_.tokens.front();
    return known.old.empty() || known.reference.empty();
}

/// A checkpoint of a later update must say what the first one found, and so does the trace.
void PolicyStep::rememberFirst() {
    if (!options_.remembers || !lacksValues() || !model_.model().context().can().computesValues) {
        return;
    }
    std::vector<std::vector<float>> values;
    values.reserve(batches_.batches.size());
    for (std::size_t batch = 0; batch < batches_.batches.size(); ++batch) {
        values.push_back(objective_->remembered(static_cast<std::int64_t>(batch)));
    }
    first_ = rolloutValues(rollouts_, batches_, values);
}

RolloutRecords PolicyStep::records(std::int64_t batch, std::int64_t rows, const TextOfToken& text) const {
    RolloutRecords out;
    if (!model_.model().context().can().computesValues) {
        return out;
    }
    const bool fromFirst = !first_.empty();
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto at = static_cast<std::size_t>(row);
        out.rows.push_back({0, batch, row, rollouts_.promptLengths[at], static_cast<double>(rollouts_.advantages[at])});
        for (std::int64_t token = 0; token < rollouts_.lengths[at]; ++token) {
            const auto index = static_cast<std::size_t>(row * rollouts_.width + token);
            const bool answers = token >= rollouts_.promptLengths[at] && rollouts_.isSaid(row, token);
            const auto value = [&](const std::vector<float>& given, bool first) {
                const std::vector<float>& from = given.empty() && first ? first_ : given;
                return answers && !from.empty() ? static_cast<double>(from[index])
                                                : std::numeric_limits<double>::quiet_NaN();
            };
            out.tokens.push_back({{0,
                                   batch,
                                   row,
                                   token,
                                   rollouts_.ids[index],
                                   value(rollouts_.old, fromFirst),
                                   value(rollouts_.rollout, false),
                                   value(rollouts_.reference, fromFirst && !options_.referenceIsBase),
                                   {}},
                                  text ? text(row, token) : std::string()});
        }
    }
    return out;
}

void PolicyCurves::add(const PolicyMeans& means) {
    kl.push_back(means.kl);
    clipShares.push_back(means.clipShare);
    entropies.push_back(means.entropy);
    ratios.push_back(means.ratio);
}

void reportPolicyUpdate(const Run& run, FinetuneModel& model, TrainingRun& training, const TrainingStep& step,
                        const PolicyMeans& means, std::int64_t number) {
    kernels::Tracer& tracer = model.model().context().tracer();
    tracer.counter("kl", means.kl);
    tracer.counter("clip_share", means.clipShare);
    tracer.counter("entropy", means.entropy);
    training.report(step, number, std::array{means.kl, means.clipShare, means.entropy});
    if (run.sinks.metric) {
        run.sinks.metric("loss", step.loss);
        run.sinks.metric("tokens_per_second", step.tokensPerSecond());
    }
    if (run.sinks.progress != nullptr) {
        run.sinks.progress->progress(
            fmt::format("Update, loss {:.4f}, {:.0f} tokens/s", step.loss, step.tokensPerSecond()),
            static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(training.steps()));
    }
}

} // namespace vitrine::engine
