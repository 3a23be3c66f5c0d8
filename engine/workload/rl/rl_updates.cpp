// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "engine/checkpoint/output_check.h"
#include "engine/training/passes/log_prob_objective.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_save.h"
#include "engine/workload/rl/rl_run.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

/// The recorder drops what comes faster than it drains; this many it always takes.
constexpr std::int64_t kRecordedTokens = std::int64_t{1} << 19;
constexpr const char* kFirstKey = "first_logprobs"; ///< of a checkpoint

/// Whether a later update, of this run or of one that goes on from it, needs what the first one finds.
bool hasLaterUpdates(const Run& run) {
    return run.spec.integer("updates") > 1 || run.spec.has("output");
}

PolicyOptions policyOptions(const Run& run, const PolicyBatches& batches) {
    PolicyOptions out;
    out.clipLow = run.spec.real("clip_low");
    out.clipHigh = run.spec.real("clip_high");
    out.klCoefficient = run.spec.real("kl");
    out.importanceCap = run.spec.real("importance_cap");
    out.temperature = run.spec.real("temperature");
    const PolicyTokens& known = batches.tokens.front();
    out.rememberOld = hasLaterUpdates(run) && known.old.empty();
    out.rememberReference = hasLaterUpdates(run) && known.reference.empty();
    return out;
}

/// Numbers of a checkpoint, for each token of an answer.
std::vector<float> firstOf(const Json& progress, const Rollouts& rollouts, const std::string& checkpoint) {
    std::vector<double> values;
    takeNumbers(values, progress, kFirstKey, checkpoint, rollouts.answerTokens());
    std::vector<float> out(rollouts.ids.size());
    std::size_t next = 0;
    for (std::int64_t row = 0; row < rollouts.rows; ++row) {
        const auto place = static_cast<std::size_t>(row);
        for (std::int64_t token = rollouts.promptLengths[place]; token < rollouts.lengths[place]; ++token) {
            out[static_cast<std::size_t>(row * rollouts.width + token)] = static_cast<float>(values[next++]);
        }
    }
    return out;
}

} // namespace

Rollouts givenRollouts(const Run& run, const ModelSource& source) {
    const std::string path = run.spec.text("rollouts");
    Rollouts out = readRollouts(path, source.config.vocab);
    if (run.spec.real("importance_cap") > 0 && out.rollout.empty()) {
        throw base::BadInput(fmt::format("{}: rollout_logprobs: missing, and importance_cap is {:g}; give what the "
                                         "sampler said of its tokens, or importance_cap 0",
                                         path, run.spec.real("importance_cap")));
    }
    return out;
}

namespace {

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

PolicyBatches givenBatches(const Run& run, const Rollouts& rollouts) {
    PolicyBatchOptions options;
    options.aggregation = run.spec.text("aggregation") == "sequence" ? Aggregation::Sequence : Aggregation::Token;
    options.sharePrompts = run.spec.flag("share_prompts");
    options.rows = run.spec.maybeInteger("batch").value_or(0);
    return policyBatches(rollouts, options);
}

PolicyUpdates::PolicyUpdates(const Run& run, const ModelSource& source, FinetuneModel& model, const Rollouts& rollouts,
                             PolicyBatches& batches)
    : run_(run), source_(source), model_(model), rollouts_(rollouts), batches_(batches),
      trainer_(model.model(), model.state(),
               memoryTechniques(run, model.model().config(), model.model().context(), batches.largest())),
      output_(trainingOutputOptions(run, source, model.model().context().can().computesValues,
                                    {"kl", "clip_share", "entropy"})),
      training_(model.model().context(), model.state(), trainer_, model.packed(), output_,
                {run.spec.integer("updates"), learningRate(run, run.spec.integer("updates")),
                 [this] { return progress(); }}) {
    addTrainedMetrics(run, model, training_.steps());
    Json& metrics = run.metrics;
    metrics[result::kSequences.key] = rollouts.rows;
    metrics[result::kPredictedTokens.key] = rollouts.answerTokens();
    metrics[result::kBatchTokens.key] = batches.count();
    metrics[result::kCheckpoint.key] = trainer_.techniques().checkpointing == Checkpointing::None      ? "none"
                                       : trainer_.techniques().checkpointing == Checkpointing::Offload ? "offload"
                                                                                                       : "layer";
}

void PolicyUpdates::run() {
    if (output_.isWritten()) {
        terms_ = std::make_shared<const Json>(resumeTerms(run_, source_, model_, trainedRows()));
    }
    resume();
    requireRoomForResult(run_, source_, model_, training_.first(), training_.steps());
    output_.begin(training_.first(), training_.steps());
    training_.run(
        {[this] { updates(); }, [this] { addMetrics(); }, [this] { saveResult(run_, source_, model_, trainer_, {}); }});
    addPeakPlace(run_, model_); // of writing it too
}

void PolicyUpdates::updates() {
    kernels::Context& context = model_.model().context();
    traceTraining(model_, training_.steps());
    const kernels::TraceScope phase(model_.model().context().tracer(), base::ScopeKind::Phase, "train");
    referenceOfBase();
    objective_ = std::make_unique<PolicyObjective>(context, policyOptions(run_, batches_), batches_.tokens);
    for (std::int64_t number = training_.first(); number <= training_.steps(); ++number) {
        update(number);
        training_.saveIfDue(number, run_.sinks.saveWanted && run_.sinks.saveWanted());
    }
}

/// An adapter that training goes on with has moved away from its base, which is the reference. Every other run begins
/// at its reference, so that the first update knows it.
void PolicyUpdates::referenceOfBase() {
    if (!run_.spec.has("adapter") || !batches_.tokens.front().reference.empty()) {
        return;
    }
    const UnquantizedWeights unquantized(model_);
    const AdapterPause pause(*model_.adapter());
    setValues(batches_, modelLogProbs(), &PolicyTokens::reference);
}

/// What the model says now, (rows, width).
std::vector<float> PolicyUpdates::modelLogProbs() {
    LogProbObjective scores(model_.model().context(), run_.spec.real("temperature"));
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
void PolicyUpdates::refuseFarLogProbs() {
    constexpr double kMostLoss = 1e30; // gradients are float32
    const double loss = objective_->loss();
    const PolicyMeans& means = objective_->means();
    if (std::fabs(loss) < kMostLoss && std::isfinite(means.kl) && std::isfinite(means.ratio) &&
        std::isfinite(means.mismatchK3)) {
        return;
    }
    const FarLogProb far = farthest(rollouts_, modelLogProbs());
    if (!far.tensor.empty()) {
        throw base::BadInput(fmt::format("{}: {}: row {}: token {}: {:g} is too far from the model's {:g}, so that "
                                         "their ratio is no number; give log-probabilities (natural logarithms) of "
                                         "this model, or leave the tensor out",
                                         run_.spec.text("rollouts"), far.tensor, far.row, far.token, far.given,
                                         far.model));
    }
}

void PolicyUpdates::update(std::int64_t number) {
    const auto beforeFirst = [this, number] {
        if (model_.model().context().can().computesValues) {
            refuseFarLogProbs();
        }
        if (number == 1 && run_.spec.has("save_gradients")) {
            saveGradients(run_, model_);
        }
    };
    const TrainingStep step =
        training_.step(number, batches_.batches, *objective_,
                       number == training_.first() ? std::function<void()>(beforeFirst) : nullptr);
    const PolicyMeans& means = objective_->means();
    if (number == training_.first()) {
        firstMeans_ = means;
        rememberFirst();
        recordRollouts();
    }
    curves_.kl.push_back(means.kl);
    curves_.clipShares.push_back(means.clipShare);
    curves_.entropies.push_back(means.entropy);
    curves_.ratios.push_back(means.ratio);
    report(step, number);
}

void PolicyUpdates::report(const TrainingStep& step, std::int64_t number) {
    const PolicyMeans& means = objective_->means();
    kernels::Tracer& tracer = model_.model().context().tracer();
    tracer.counter("kl", means.kl);
    tracer.counter("clip_share", means.clipShare);
    tracer.counter("entropy", means.entropy);
    training_.report(step, number, std::array{means.kl, means.clipShare, means.entropy});
    if (run_.sinks.metric) {
        run_.sinks.metric("loss", step.loss);
        run_.sinks.metric("tokens_per_second", step.tokensPerSecond());
    }
    if (run_.sinks.progress != nullptr) {
        run_.sinks.progress->progress(
            fmt::format("Update, loss {:.4f}, {:.0f} tokens/s", step.loss, step.tokensPerSecond()),
            static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(training_.steps()));
    }
}

bool PolicyUpdates::remembers() const {
    const PolicyTokens& known = batches_.tokens.front();
    return hasLaterUpdates(run_) && (known.old.empty() || known.reference.empty());
}

/// A checkpoint of a later update must say what the first one found, and so does the trace.
void PolicyUpdates::rememberFirst() {
    if (!remembers() || !model_.model().context().can().computesValues) {
        return;
    }
    std::vector<std::vector<float>> values;
    values.reserve(batches_.batches.size());
    for (std::size_t batch = 0; batch < batches_.batches.size(); ++batch) {
        values.push_back(objective_->remembered(static_cast<std::int64_t>(batch)));
    }
    first_ = rolloutValues(rollouts_, batches_, values);
}

/// What the run trains on, so that the session has it: the file may be gone when somebody looks.
void PolicyUpdates::recordRollouts() {
    kernels::Context& context = model_.model().context();
    if (!context.can().computesValues) {
        return;
    }
    std::int64_t all = 0;
    for (const std::int32_t length : rollouts_.lengths) {
        all += length;
    }
    if (all > kRecordedTokens) {
        base::logWarning(fmt::format("rollouts: have {} tokens, and a session takes {}; keep {}", all, kRecordedTokens,
                                     run_.spec.text("rollouts")));
        return;
    }
    const bool fromFirst = !first_.empty();
    const base::TimeNs now = context.tracer().now();
    for (std::int64_t row = 0; row < rollouts_.rows; ++row) {
        const auto at = static_cast<std::size_t>(row);
        context.tracer().rollout(
            {now, training_.first(), row, rollouts_.promptLengths[at], static_cast<double>(rollouts_.advantages[at])});
        for (std::int64_t token = 0; token < rollouts_.lengths[at]; ++token) {
            const auto place = static_cast<std::size_t>(row * rollouts_.width + token);
            const bool answers = token >= rollouts_.promptLengths[at];
            const auto value = [&](const std::vector<float>& given, bool first) {
                const std::vector<float>& from = given.empty() && first ? first_ : given;
                return answers && !from.empty() ? static_cast<double>(from[place])
                                                : std::numeric_limits<double>::quiet_NaN();
            };
            context.tracer().rolloutToken({now, training_.first(), row, token, rollouts_.ids[place],
                                           value(rollouts_.old, fromFirst), value(rollouts_.rollout, false),
                                           value(rollouts_.reference, fromFirst && !run_.spec.has("adapter"))});
        }
    }
}

TrainedRows PolicyUpdates::trainedRows() const {
    base::Sha256 hash;
    const auto add = [&hash](const auto& values) {
        hash.add(fmt::format("{}\n", values.size()));
        hash.add({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])});
    };
    for (const auto* numbers : {&rollouts_.ids, &rollouts_.promptLengths, &rollouts_.lengths}) {
        add(*numbers);
    }
    for (const auto* numbers : {&rollouts_.advantages, &rollouts_.old, &rollouts_.rollout, &rollouts_.reference}) {
        add(*numbers);
    }
    return {hash.hex(), run_.spec.maybeInteger("batch").value_or(0), training_.steps()};
}

Json PolicyUpdates::progress() const {
    Json first = Json::array();
    for (std::int64_t row = 0; row < rollouts_.rows && !first_.empty(); ++row) {
        const auto place = static_cast<std::size_t>(row);
        for (std::int64_t token = rollouts_.promptLengths[place]; token < rollouts_.lengths[place]; ++token) {
            first.push_back(first_[static_cast<std::size_t>(row * rollouts_.width + token)]);
        }
    }
    return {{"kl", curves_.kl},
            {"clip_share", curves_.clipShares},
            {"entropy", curves_.entropies},
            {"ratio", curves_.ratios},
            {"logprob_abs_diff", firstMeans_.logprobAbsDiff},
            {"mismatch_k3", firstMeans_.mismatchK3},
            {"truncated_share", firstMeans_.truncatedShare},
            {kFirstKey, std::move(first)},
            {"terms", terms_ != nullptr ? *terms_ : Json()},
            {"spec", run_.spec.toJson()}};
}

void PolicyUpdates::resume() {
    const auto take = [this](const Json& progress, const std::string& checkpoint) {
        const std::string output = run_.spec.text("output");
        checkResumeTerms(progress.value("terms", Json()),
                         terms_ == nullptr ? resumeTerms(run_, source_, model_, trainedRows()) : *terms_, checkpoint,
                         !output.empty() && !goesOnIn(checkpoint, output));
        const auto done = progress.at("step").get<std::int64_t>();
        takeNumbers(curves_.kl, progress, "kl", checkpoint, done);
        takeNumbers(curves_.clipShares, progress, "clip_share", checkpoint, done);
        takeNumbers(curves_.entropies, progress, "entropy", checkpoint, done);
        takeNumbers(curves_.ratios, progress, "ratio", checkpoint, done);
        firstMeans_.logprobAbsDiff = progress.value("logprob_abs_diff", 0.0);
        firstMeans_.mismatchK3 = progress.value("mismatch_k3", 0.0);
        firstMeans_.truncatedShare = progress.value("truncated_share", 0.0);
        const bool lacksOld = rollouts_.old.empty();
        const bool lacksReference = rollouts_.reference.empty() && !run_.spec.has("adapter"); // else its base has it
        if (lacksOld || lacksReference) {
            first_ = firstOf(progress, rollouts_, checkpoint);
        }
        if (lacksOld) {
            setValues(batches_, first_, &PolicyTokens::old);
        }
        if (lacksReference) {
            setValues(batches_, first_, &PolicyTokens::reference);
        }
    };
    if (training_.resume(take)) {
        run_.metrics[result::kResumedFromStep.key] = training_.first() - 1;
    }
}

void PolicyUpdates::addMetrics() {
    addCurveMetrics(run_, model_, training_.curves());
    if (!model_.model().context().can().computesValues) {
        return;
    }
    Json& metrics = run_.metrics;
    metrics[result::kDivergence.key] = curves_.kl;
    metrics[result::kClipShare.key] = curves_.clipShares;
    metrics[result::kEntropy.key] = curves_.entropies;
    metrics[result::kMeanRatio.key] = curves_.ratios;
    if (!rollouts_.rollout.empty()) {
        metrics[result::kLogprobAbsDiff.key] = firstMeans_.logprobAbsDiff;
        metrics[result::kMismatchK3.key] = firstMeans_.mismatchK3;
        metrics[result::kTruncatedShare.key] = firstMeans_.truncatedShare;
    }
}

} // namespace vitrine::engine
