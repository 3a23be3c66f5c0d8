// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "engine/checkpoint/output_check.h"
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

PolicyUpdates::PolicyUpdates(const Run& run, const ModelSource& source, FinetuneModel& model, const Rollouts& rollouts,
                             PolicyBatches& batches)
    : run_(run), source_(source), model_(model), rollouts_(rollouts), batches_(batches),
      trainer_(model.model(), model.state(),
               memoryTechniques(run, model.model().config(), model.model().context(), batches.largest())),
      output_(trainingOutputOptions(run, source, model.model().context().can().computesValues,
                                    {"kl", "clip_share", "entropy"})),
      training_(
          model.model().context(), model.state(), trainer_, model.packed(), output_,
          {run.spec.integer("updates"), learningRate(run, run.spec.integer("updates")), [this] { return progress(); }}),
      // An adapter that training goes on with has moved away from its base, which is the reference. Every other run
      // begins at its reference, so that the first update knows it.
      step_(run, model, trainer_, training_, rollouts, batches,
            {run.spec.text("rollouts"), hasLaterUpdates(run), run.spec.has("adapter") && rollouts.reference.empty()}) {
    addTrainedMetrics(run, model, training_.steps());
    Json& metrics = run.metrics;
    metrics[result::kSequences.key] = rollouts.rows;
    metrics[result::kPredictedTokens.key] = rollouts.answerTokens();
    metrics[result::kBatchTokens.key] = batches.count();
    metrics[result::kCheckpoint.key] = checkpointingName(trainer_.techniques());
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
    traceTraining(model_, training_.steps());
    const kernels::TraceScope phase(model_.model().context().tracer(), base::ScopeKind::Phase, "train");
    step_.begin();
    for (std::int64_t number = training_.first(); number <= training_.steps(); ++number) {
        update(number);
        training_.saveIfDue(number, run_.sinks.saveWanted && run_.sinks.saveWanted());
    }
}

void PolicyUpdates::update(std::int64_t number) {
    const bool saves = number == 1 && run_.spec.has("save_gradients");
    const TrainingStep step =
        step_.update(number, saves ? std::function<void()>([this] { saveGradients(run_, model_); }) : nullptr);
    if (number == training_.first()) {
        firstMeans_ = step_.firstMeans();
        recordRollouts(number);
    }
    curves_.add(step_.means());
    reportPolicyUpdate(run_, model_, training_, step, step_.means(), number);
}

/// What the run trains on, so that the session has it: the file may be gone when somebody looks.
void PolicyUpdates::recordRollouts(std::int64_t number) {
    std::int64_t all = 0;
    for (const std::int32_t length : rollouts_.lengths) {
        all += length;
    }
    if (all > kRecordedTokens && model_.model().context().can().computesValues) {
        base::logWarning(fmt::format("rollouts: have {} tokens, and a session takes {}; keep {}", all, kRecordedTokens,
                                     run_.spec.text("rollouts")));
        return;
    }
    step_.records(number, rollouts_.rows, nullptr).report(model_.model().context().tracer());
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
    const std::vector<float>& known = step_.first();
    for (std::int64_t row = 0; row < rollouts_.rows && !known.empty(); ++row) {
        const auto place = static_cast<std::size_t>(row);
        for (std::int64_t token = rollouts_.promptLengths[place]; token < rollouts_.lengths[place]; ++token) {
            first.push_back(known[static_cast<std::size_t>(row * rollouts_.width + token)]);
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
        // An adapter that goes on has its base as the reference.
        if (rollouts_.old.empty() || (rollouts_.reference.empty() && !run_.spec.has("adapter"))) {
            step_.takeFirst(firstOf(progress, rollouts_, checkpoint));
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
