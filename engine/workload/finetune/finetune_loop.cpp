// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/trace.h"
#include "engine/checkpoint/output_check.h"
#include "engine/training/files/adapter_saving.h"
#include "engine/training/parameters/host_floats.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_run.h"
#include "engine/workload/finetune/finetune_save.h"
#include "engine/workload/finetune/resume_terms.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

LearningRate learningRate(const Run& run, std::int64_t steps) {
    LearningRate out;
    out.schedule = rateScheduleByName(run.spec.text("schedule")).value();
    out.peak = run.spec.real("lr");
    out.warmupSteps = run.spec.integer("warmup_steps");
    out.totalSteps = steps;
    out.minimumShare = run.spec.real("lr_minimum");
    return out;
}

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
      rate_(learningRate(run, data.steps())), prompts_(run, source, model.model(), data.steps()),
      output_(run, source, model.model().context().can().computesValues), steps_(data.steps()) {
    if (PackedCopies* packed = model.packed()) {
        trainer_.setPreparation([packed] { packed->refresh(); });
    }
    Json& metrics = run.metrics;
    metrics[result::kTrainedParameters.key] = model.state().elements();
    metrics[result::kTrainedShare.key] =
        static_cast<double>(model.state().elements()) / static_cast<double>(model.parameters());
    metrics[result::kSteps.key] = steps_;
    metrics[result::kBatchTokens.key] = data.largestBatch();
    data.addMetrics(metrics);
}

void FinetuneLoop::run() {
    if (output_.isWritten()) {
        terms_ = std::make_shared<const Json>(resumeTerms(run_, source_, model_, data_));
    }
    resume();
    requireRoomForResult(run_, source_, model_, first_, steps_);
    output_.begin(first_, steps_);
    try {
        steps();
        addMetrics();
        holdFolder();
        addQuantizedLosses();
        saveTrained();
    } catch (const base::Cancelled&) {
        keepState(); // that of the last whole step
        addMetrics();
        throw;
    } catch (...) {
        addMetrics();
        throw;
    }
    addPeak();
}

/// What was trained is not lost with the result of it.
void FinetuneLoop::saveTrained() {
    try {
        saveResult(run_, source_, model_, trainer_, data_);
    } catch (const base::Cancelled&) {
        throw;
    } catch (const base::Error& error) {
        base::logWarning(fmt::format("the result is not written and evaluated whole: {}", error.message()));
        keepState();
        throw;
    }
}

void FinetuneLoop::keepState() {
    const auto step = static_cast<std::int64_t>(losses_.size());
    if (step > 0 && (savedStep_ != step)) {
        save(step);
    }
}

/// What was saved in a folder that another run has taken meanwhile is gone with it.
void FinetuneLoop::holdFolder() {
    try {
        output_.holdFolder();
    } catch (const base::Error&) {
        savedStep_ = 0;
        keepState();
        throw;
    }
}

bool FinetuneLoop::evaluates(std::int64_t step) const {
    const std::int64_t every = run_.spec.integer("eval_every");
    return every > 0 && (step % every == 0 || step == steps_);
}

/// What a run that was stopped after its last step did not come to.
void FinetuneLoop::catchUp() {
    const std::int64_t done = first_ - 1;
    if (done > 0 && evaluates(done) && std::ranges::find(evalSteps_, done) == evalSteps_.end()) {
        evaluate(done);
    }
    if (!prompts_.empty() && !prompts_.answered(done)) {
        answer(done);
    }
}

void FinetuneLoop::steps() {
    kernels::Tracer& tracer = model_.model().context().tracer();
    tracer.counter("training_steps", static_cast<double>(steps_));
    tracer.counter("trained_parameters", static_cast<double>(model_.state().elements()));
    tracer.counter("model_parameters", static_cast<double>(model_.parameters()));
    const kernels::TraceScope phase(tracer, base::ScopeKind::Phase, "train");
    const std::int64_t saveEvery = run_.spec.integer("save_every");
    catchUp();
    for (std::int64_t number = first_; number <= steps_; ++number) {
        step(number);
        if (evaluates(number)) {
            evaluate(number);
        }
        if (prompts_.due(number)) {
            answer(number);
        }
        const bool asked = run_.sinks.saveWanted && run_.sinks.saveWanted();
        if (asked || (saveEvery > 0 && number % saveEvery == 0)) {
            save(number);
        }
    }
}

void FinetuneLoop::step(std::int64_t number) {
    const bool saves = number == 1 && run_.spec.has("save_gradients");
    const base::TimeNs begin = model_.model().context().tracer().now();
    const TrainingStep done = trainer_.step(data_.batches(number), rate_.at(number - 1), number,
                                            saves ? std::function<void()>([this] { saveGradients(); }) : nullptr);
    record(done, begin, number);
    requireFinite("loss", done.loss, number);
    requireFinite("gradient norm", done.gradientNorm, number);
    if (model_.packed() != nullptr && model_.model().context().can().computesValues) {
        codesChanged_.push_back(model_.packed()->changedShare());
        model_.model().context().tracer().counter("codes_changed", codesChanged_.back());
    }
    report(done, number);
}

/// Also of a step whose loss is not finite: where a run failed is seen in its curves.
void FinetuneLoop::record(const TrainingStep& step, base::TimeNs begin, std::int64_t number) {
    kernels::Context& context = model_.model().context();
    if (context.can().computesValues) {
        context.tracer().trainingStep(
            {begin, context.tracer().now(), number, step.tokens, step.loss, rate_.at(number - 1), step.gradientNorm});
    }
}

void FinetuneLoop::mark(base::TrainingMark kind, base::TimeNs begin, std::int64_t step, double value) {
    kernels::Context& context = model_.model().context();
    if (context.can().computesValues) {
        context.tracer().trainingMark({begin, context.tracer().now(), step, kind, value});
    }
}

/// The state is spoiled; checkpoints of earlier steps are not.
void FinetuneLoop::requireFinite(std::string_view what, double value, std::int64_t step) const {
    if (!std::isfinite(value)) {
        throw base::BadInput(
            fmt::format("lr: the {} is {} at step {}; try a smaller one, or check the model's weights and the data",
                        what, value, step));
    }
}

void FinetuneLoop::report(const TrainingStep& step, std::int64_t number) {
    losses_.push_back(step.loss);
    norms_.push_back(step.gradientNorm);
    auxLosses_.push_back(step.auxLoss);
    rates_.push_back(rate_.at(number - 1));
    stepSeconds_.push_back(step.seconds);
    tokens_ += step.tokens;
    keptOnDevice_ = std::max(keptOnDevice_, step.keptOnDevice);
    const double perSecond = step.seconds > 0 ? static_cast<double>(step.tokens) / step.seconds : 0;
    try {
        output_.writeStep(number, std::array{step.loss, rates_.back(), step.gradientNorm, perSecond});
    } catch (const base::Error&) {
        keepState();
        throw;
    }
    if (run_.sinks.metric) {
        run_.sinks.metric("loss", step.loss);
        run_.sinks.metric("tokens_per_second", perSecond);
    }
    if (run_.sinks.progress != nullptr) {
        const auto left = static_cast<double>(steps_ - number) * median(stepSeconds_);
        run_.sinks.progress->progress(
            fmt::format("Training, loss {:.4f}, {:.0f} tokens/s, {:.0f} s left", step.loss, perSecond, left),
            static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(steps_));
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
    mark(base::TrainingMark::Evaluated, begin, number, loss);
    requireFinite("validation loss", loss, number);
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
    mark(base::TrainingMark::Answered, begin, number, static_cast<double>(prompts_.size()));
    if (run_.sinks.fact && context.can().computesValues) {
        run_.sinks.fact(result::kAnswers.key, prompts_.answers());
    }
}

void FinetuneLoop::saveGradients() const {
    const std::string path = run_.spec.text("save_gradients");
    const GradientMap& gradients = model_.state().gradients();
    if (model_.adapter() != nullptr) {
        writeAdapterTensors(
            path, model_.adapter()->values([&](const kernels::TensorView& value) { return gradients.of(value); }),
            madeBy(kGradientsOutput));
        return;
    }
    std::vector<TensorSpec> specs;
    for (const TrainedTensor& tensor : model_.state().tensors()) {
        const auto dims = tensor.value.shape.dims();
        specs.push_back({tensor.name, kernels::DType::F32, {dims.begin(), dims.end()}});
    }
    const auto writer = SafetensorsWriter::create(path, specs, madeBy(kGradientsOutput));
    for (const TrainedTensor& tensor : model_.state().tensors()) {
        const std::vector<float> values = downloadFloats(model_.model().context(), gradients.of(tensor.value));
        writer->write(values.data(), values.size() * sizeof(float));
    }
    writer->finish();
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
    const bool values = model_.model().context().can().computesValues;
    if (values) {
        metrics[result::kLosses.key] = losses_;
        metrics[result::kGradNorms.key] = norms_;
        metrics[result::kLearningRates.key] = rates_;
        metrics[result::kAuxLosses.key] = auxLosses_;
        if (model_.packed() != nullptr) {
            metrics[result::kCodesChanged.key] = codesChanged_;
            metrics[result::kQuantizedWeights.key] = model_.packed()->changing();
            metrics[result::kQuantizedUpdates.key] = model_.packed()->updates();
        }
        metrics[result::kEvalLosses.key] = evalLosses_;
        metrics[result::kEvalSteps.key] = evalSteps_;
        if (!prompts_.empty()) {
            metrics[result::kAnswers.key] = prompts_.answers();
        }
    }
    metrics[result::kStepSeconds.key] = stepSeconds_;
    double seconds = 0;
    for (const double each : stepSeconds_) {
        seconds += each;
    }
    // The first step compiles kernels and touches memory for the first time.
    const double typical = stepSeconds_.size() > 2 ? median({stepSeconds_.begin() + 1, stepSeconds_.end()}) : 0;
    const auto steps = static_cast<double>(std::max<std::size_t>(stepSeconds_.size(), 1));
    const double perStep = static_cast<double>(tokens_) / steps;
    metrics[result::kTokensPerSecond.key] = typical > 0   ? perStep / typical
                                            : seconds > 0 ? static_cast<double>(tokens_) / seconds
                                                          : 0;
    metrics[result::kTokens.key] = tokens_;
    metrics[result::kCheckpointsOnDevice.key] = keptOnDevice_;
    addPeak();
}

void FinetuneLoop::addPeak() {
    run_.metrics[result::kPeakAt.key] = model_.model().context().memory().statistics().peakPlace.text();
}

} // namespace vitrine::engine
