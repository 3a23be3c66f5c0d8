// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/trace.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_run.h"
#include "engine/workload/finetune/finetune_save.h"
#include "engine/workload/finetune/resume_terms.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

/// The coefficient of the load-balancing loss.
double auxLoss(const Run& run, const ModelConfig& config) {
    const std::optional<double> given = run.spec.maybeReal("router_aux_loss");
    if (given.value_or(0) > 0 && config.experts == 0) {
        throw base::BadInput("router_aux_loss: the model has no experts; leave the option out");
    }
    return given.value_or(config.routerAuxLoss);
}

} // namespace

FinetuneLoop::FinetuneLoop(const Run& run, const ModelSource& source, FinetuneModel& model, FinetuneData& data)
    : run_(run), source_(source), model_(model), data_(data),
      trainer_(model.model(), model.state(),
               memoryTechniques(run, model.model().config(), model.model().context(), data.largestBatch()),
               {auxLoss(run, model.model().config()), model.adapterConfig().dropout}, run.seed()),
      prompts_(run, source, model.model(), data.steps()),
      output_(trainingOutputOptions(run, source, model.model().context().can().computesValues)),
      training_(model.model().context(), model.state(), trainer_, model.packed(), output_,
                {data.steps(), learningRate(run, data.steps()), [this] { return progress(); }}) {
    addTrainedMetrics(run, model, data.steps());
    run.metrics[result::kBatchTokens.key] = data.largestBatch();
    data.addMetrics(run.metrics);
}

void FinetuneLoop::run() {
    if (output_.isWritten()) {
        terms_ = std::make_shared<const Json>(resumeTerms(run_, source_, model_, trainedRows()));
    }
    resume();
    requireRoomForResult(run_, source_, model_, training_.first(), training_.steps());
    output_.begin(training_.first(), training_.steps());
    training_.run({[this] { steps(); }, [this] { addMetrics(); },
                   [this] {
                       addQuantizedLosses();
                       saveResult(run_, source_, model_, trainer_,
                                  data_.validation().empty() ? data_.batches(1) : data_.validation());
                   }});
    addPeakPlace(run_, model_); // of writing it too
}

bool FinetuneLoop::evaluates(std::int64_t step) const {
    const std::int64_t every = run_.spec.integer("eval_every");
    return every > 0 && (step % every == 0 || step == training_.steps());
}

/// What a run that was stopped after its last step did not come to.
void FinetuneLoop::catchUp() {
    const std::int64_t done = training_.first() - 1;
    if (done > 0 && evaluates(done) && std::ranges::find(evalSteps_, done) == evalSteps_.end()) {
        evaluate(done);
    }
    if (!prompts_.empty() && !prompts_.answered(done)) {
        answer(done);
    }
}

void FinetuneLoop::steps() {
    traceTraining(model_, training_.steps());
    const kernels::TraceScope phase(model_.model().context().tracer(), base::ScopeKind::Phase, "train");
    catchUp();
    for (std::int64_t number = training_.first(); number <= training_.steps(); ++number) {
        step(number);
        if (evaluates(number)) {
            evaluate(number);
        }
        if (prompts_.due(number)) {
            answer(number);
        }
        training_.saveIfDue(number, run_.sinks.saveWanted && run_.sinks.saveWanted());
    }
}

void FinetuneLoop::step(std::int64_t number) {
    const bool saves = number == 1 && run_.spec.has("save_gradients");
    report(training_.step(number, data_.batches(number), trainer_.nextToken(),
                          saves ? std::function<void()>([this] { saveGradients(run_, model_); }) : nullptr),
           number);
}

void FinetuneLoop::report(const TrainingStep& step, std::int64_t number) {
    training_.report(step, number);
    if (run_.sinks.metric) {
        run_.sinks.metric("loss", step.loss);
        run_.sinks.metric("tokens_per_second", step.tokensPerSecond());
    }
    if (run_.sinks.progress != nullptr) {
        const auto left = static_cast<double>(training_.steps() - number) * median(training_.curves().seconds);
        run_.sinks.progress->progress(fmt::format("Training, loss {:.4f}, {:.0f} tokens/s, {:.0f} s left", step.loss,
                                                  step.tokensPerSecond(), left),
                                      static_cast<std::uint64_t>(number),
                                      static_cast<std::uint64_t>(training_.steps()));
    }
}

/// Of one that is stopped, the result says so, and a run that goes on makes it.
double FinetuneLoop::lossOfEvaluation(std::int64_t number) {
    try {
        return trainer_.loss(data_.validation());
    } catch (const base::Cancelled&) {
        run_.metrics[result::kEvalCutAtStep.key] = number;
        base::logWarning(
            fmt::format("the evaluation after step {} was cut; a run that goes on with --resume makes it", number));
        throw;
    }
}

void FinetuneLoop::evaluate(std::int64_t number) {
    const base::TimeNs begin = model_.model().context().tracer().now();
    const double loss = lossOfEvaluation(number);
    training_.mark(base::TrainingMark::Evaluated, begin, number, loss);
    TrainingRun::requireFinite("validation loss", loss, number);
    evalLosses_.push_back(loss);
    evalSteps_.push_back(number);
    if (run_.sinks.metric) {
        run_.sinks.metric("eval_step", static_cast<double>(number));
        run_.sinks.metric("eval_loss", evalLosses_.back());
    }
    output_.writeEvaluation(number, evalLosses_.back());
    model_.model().context().tracer().counter("eval_loss", evalLosses_.back());
}

void FinetuneLoop::answer(std::int64_t number) {
    kernels::Context& context = model_.model().context();
    const base::TimeNs begin = context.tracer().now();
    trainer_.prepare();
    prompts_.answer(number);
    training_.mark(base::TrainingMark::Answered, begin, number, static_cast<double>(prompts_.size()));
    if (run_.sinks.fact && context.can().computesValues) {
        run_.sinks.fact(result::kAnswers.key, prompts_.answers());
    }
}

/// Of the weights as they were quantized, and as they were not, over the same rows. Nothing is saved without an output:
/// the model that training ends with stands for it.
void FinetuneLoop::addQuantizedLosses() {
    if (!model_.quantizes() || !model_.model().context().can().computesValues) {
        return;
    }
    const std::vector<TrainingBatch> batches = data_.validation().empty() ? data_.batches(1) : data_.validation();
    run_.metrics[result::kTrainedLoss.key] = run_.metrics[result::kSavedLoss.key] = trainer_.loss(batches);
    if (model_.packed() == nullptr) {
        return; // the files have no other values
    }
    const UnquantizedWeights unquantized(model_);
    run_.metrics[result::kUnquantizedLoss.key] = trainer_.loss(batches);
}

void FinetuneLoop::addMetrics() {
    Json& metrics = run_.metrics;
    addCurveMetrics(run_, model_, training_.curves());
    if (model_.model().context().can().computesValues) {
        metrics[result::kEvalLosses.key] = evalLosses_;
        metrics[result::kEvalSteps.key] = evalSteps_;
        if (!prompts_.empty()) {
            metrics[result::kAnswers.key] = prompts_.answers();
        }
    }
}

} // namespace vitrine::engine
