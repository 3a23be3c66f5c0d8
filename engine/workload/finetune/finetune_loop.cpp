// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/training/host_floats.h"
#include "engine/training/training_checkpoint.h"
#include "engine/workload/finetune/finetune_run.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

std::int64_t batchTokens(const FinetuneData& data) {
    std::int64_t most = 0;
    const auto sequences = static_cast<std::int64_t>(data.training.size());
    const std::int64_t batches = (sequences + data.batch - 1) / data.batch;
    for (std::int64_t i = 0; i < batches; ++i) {
        most = std::max(most, static_cast<std::int64_t>(data.microBatch(i + 1, 0, 1).tokens.size()));
    }
    return most;
}

/// One pass over the data.
std::int64_t stepsOfEpoch(const FinetuneData& data, std::int64_t perStep) {
    const std::int64_t sequences = data.batch * perStep;
    return (static_cast<std::int64_t>(data.training.size()) + sequences - 1) / sequences;
}

} // namespace

FinetuneLoop::FinetuneLoop(const Run& run, FinetuneModel& model, const FinetuneData& data)
    : run_(run), model_(model), data_(data),
      trainer_(model.model(), model.state(),
               memoryTechniques(run, model.model().config(), model.model().context(), batchTokens(data))) {
    steps_ = run.spec.maybeInteger("steps").value_or(stepsOfEpoch(data, run.spec.integer("accumulate")));
    Json& metrics = run.metrics;
    metrics["trained_parameters"] = model.state().elements();
    metrics["trained_share"] = static_cast<double>(model.state().elements()) / static_cast<double>(model.parameters());
    metrics["steps"] = steps_;
    metrics["batch_tokens"] = batchTokens(data);
}

void FinetuneLoop::run() {
    resume();
    kernels::Context& context = model_.model().context();
    const kernels::TraceScope phase(context.tracer(), base::ScopeKind::Phase, "train");
    try {
        for (std::int64_t number = first_; number <= steps_; ++number) {
            step(number);
            const std::int64_t evalEvery = run_.spec.integer("eval_every");
            if (evalEvery > 0 && number % evalEvery == 0) {
                evaluate(number);
            }
            const std::int64_t saveEvery = run_.spec.integer("save_every");
            if (saveEvery > 0 && number % saveEvery == 0 && number < steps_) {
                save(number);
            }
        }
    } catch (const base::Cancelled&) {
        // The state is that of the last whole step.
        if (!run_.spec.text("output").empty() && !losses_.empty()) {
            save(static_cast<std::int64_t>(losses_.size()));
        }
        addMetrics();
        throw;
    } catch (...) {
        addMetrics();
        throw;
    }
    addMetrics();
}

double FinetuneLoop::rate(std::int64_t number) const {
    const std::int64_t warmup = run_.spec.integer("warmup_steps");
    const double share = number <= warmup ? static_cast<double>(number - 1) / static_cast<double>(warmup) : 1.0;
    return run_.spec.real("lr") * share;
}

void FinetuneLoop::step(std::int64_t number) {
    const std::int64_t perStep = run_.spec.integer("accumulate");
    std::vector<TrainingBatch> batches;
    for (std::int64_t micro = 0; micro < perStep; ++micro) {
        batches.push_back(data_.microBatch(number, micro, perStep));
    }
    const bool saves = number == 1 && !run_.spec.text("save_gradients").empty();
    const TrainingStep done = trainer_.step(batches, rate(number), number,
                                            saves ? std::function<void()>([this] { saveGradients(); }) : nullptr);
    report(done, number);
}

void FinetuneLoop::report(const TrainingStep& step, std::int64_t number) {
    losses_.push_back(step.loss);
    norms_.push_back(step.gradientNorm);
    rates_.push_back(rate(number));
    stepSeconds_.push_back(step.seconds);
    tokens_ += step.tokens;
    const double perSecond = step.seconds > 0 ? static_cast<double>(step.tokens) / step.seconds : 0;
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

void FinetuneLoop::evaluate(std::int64_t number) {
    if (data_.validation.empty()) {
        return;
    }
    evalLosses_.push_back(trainer_.loss(data_.validation));
    evalSteps_.push_back(number);
    model_.model().context().tracer().counter("eval_loss", evalLosses_.back());
}

void FinetuneLoop::save(std::int64_t number) {
    const Json progress = {{"losses", losses_},          {"grad_norms", norms_},     {"learning_rates", rates_},
                           {"eval_losses", evalLosses_}, {"eval_steps", evalSteps_}, {"spec", run_.spec.toJson()}};
    writeTrainingCheckpoint(run_.spec.text("output"), number, model_.model().context(), model_.state(), progress, {});
}

void FinetuneLoop::resume() {
    if (run_.spec.text("resume").empty()) {
        return;
    }
    const std::string folder = findTrainingCheckpoint(run_.spec.text("resume"));
    const Json progress = readTrainingProgress(folder);
    readTrainedState(folder, model_.model().context(), model_.state());
    const auto numbers = [&](const char* field, auto& out) {
        const auto found = progress.find(field);
        if (found == progress.end() || !found->is_array()) {
            throw base::BadInput(
                fmt::format("{}/trainer_state.json: {}: is missing; use an earlier checkpoint", folder, field));
        }
        out = found->get<std::decay_t<decltype(out)>>();
    };
    numbers("losses", losses_);
    numbers("grad_norms", norms_);
    numbers("learning_rates", rates_);
    numbers("eval_losses", evalLosses_);
    numbers("eval_steps", evalSteps_);
    first_ = progress.at("step").get<std::int64_t>() + 1;
    if (first_ > steps_) {
        throw base::BadInput(
            fmt::format("resume: {} has {} steps already; ask for more than that with steps", folder, first_ - 1));
    }
    run_.metrics["resumed_from_step"] = first_ - 1;
}

void FinetuneLoop::saveGradients() const {
    std::vector<TensorSpec> specs;
    for (const TrainedTensor& tensor : model_.state().tensors()) {
        const auto dims = tensor.value.shape.dims();
        specs.push_back({tensor.name, kernels::DType::F32, {dims.begin(), dims.end()}});
    }
    const auto writer = SafetensorsWriter::create(run_.spec.text("save_gradients"), specs);
    for (const TrainedTensor& tensor : model_.state().tensors()) {
        const std::vector<float> values =
            downloadFloats(model_.model().context(), model_.state().gradients().of(tensor.value));
        writer->write(values.data(), values.size() * sizeof(float));
    }
    writer->finish();
}

void FinetuneLoop::addMetrics() {
    Json& metrics = run_.metrics;
    const bool values = model_.model().context().can().computesValues;
    if (values) {
        metrics["losses"] = losses_;
        metrics["grad_norms"] = norms_;
        metrics["learning_rates"] = rates_;
        metrics["eval_losses"] = evalLosses_;
        metrics["eval_steps"] = evalSteps_;
    }
    metrics["step_seconds"] = stepSeconds_;
    double seconds = 0;
    for (const double each : stepSeconds_) {
        seconds += each;
    }
    // The first step compiles kernels and touches memory for the first time.
    const double typical = stepSeconds_.size() > 2 ? median({stepSeconds_.begin() + 1, stepSeconds_.end()}) : 0;
    const auto steps = static_cast<double>(std::max<std::size_t>(stepSeconds_.size(), 1));
    const double perStep = static_cast<double>(tokens_) / steps;
    metrics["tokens_per_second"] = typical > 0   ? perStep / typical
                                   : seconds > 0 ? static_cast<double>(tokens_) / seconds
                                                 : 0;
    metrics["tokens"] = tokens_;
}

} // namespace vitrine::engine
