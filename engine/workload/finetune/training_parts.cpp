// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What the loops of trainings share: numbers for results, and files.

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/output_check.h"
#include "engine/checkpoint/shards.h"
#include "engine/training/adapters/adapter_saving.h"
#include "engine/training/parameters/host_floats.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_run.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

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

void saveGradients(const Run& run, FinetuneModel& model) {
    const std::string path = run.spec.text("save_gradients");
    const GradientMap& gradients = model.state().gradients();
    if (model.adapter() != nullptr) {
        writeAdapterTensors(
            path, model.adapter()->values([&](const kernels::TensorView& value) { return gradients.of(value); }),
            madeBy(kGradientsOutput));
        return;
    }
    std::vector<TensorSpec> specs;
    for (const TrainedTensor& tensor : model.state().tensors()) {
        const auto dims = tensor.value.shape.dims();
        specs.push_back({tensor.name, kernels::DType::F32, {dims.begin(), dims.end()}});
    }
    const auto writer = SafetensorsWriter::create(path, specs, madeBy(kGradientsOutput));
    for (const TrainedTensor& tensor : model.state().tensors()) {
        const std::vector<float> values = downloadFloats(model.model().context(), gradients.of(tensor.value));
        writer->write(values.data(), values.size() * sizeof(float));
    }
    writer->finish();
}

void addTrainedMetrics(const Run& run, FinetuneModel& model, std::int64_t steps) {
    Json& metrics = run.metrics;
    metrics[result::kTrainedParameters.key] = model.state().elements();
    metrics[result::kTrainedShare.key] =
        static_cast<double>(model.state().elements()) / static_cast<double>(model.parameters());
    metrics[result::kSteps.key] = steps;
}

void traceTraining(FinetuneModel& model, std::int64_t steps) {
    kernels::Tracer& tracer = model.model().context().tracer();
    tracer.counter("training_steps", static_cast<double>(steps));
    tracer.counter("trained_parameters", static_cast<double>(model.state().elements()));
    tracer.counter("model_parameters", static_cast<double>(model.parameters()));
}

void addCurveMetrics(const Run& run, FinetuneModel& model, const TrainingCurves& curves) {
    Json& metrics = run.metrics;
    if (model.model().context().can().computesValues) {
        metrics[result::kLosses.key] = curves.losses;
        metrics[result::kGradNorms.key] = curves.gradientNorms;
        metrics[result::kLearningRates.key] = curves.learningRates;
        metrics[result::kAuxLosses.key] = curves.auxLosses;
        if (model.packed() != nullptr) {
            metrics[result::kCodesChanged.key] = curves.codesChanged;
            metrics[result::kQuantizedWeights.key] = model.packed()->changing();
            metrics[result::kQuantizedUpdates.key] = model.packed()->updates();
        }
    }
    metrics[result::kStepSeconds.key] = curves.seconds;
    double seconds = 0;
    for (const double each : curves.seconds) {
        seconds += each;
    }
    // The first step compiles kernels and touches memory for the first time.
    const std::vector<double>& all = curves.seconds;
    const double typical = all.size() > 2 ? median({all.begin() + 1, all.end()}) : 0;
    const auto tokens = static_cast<double>(curves.tokens);
    const double perStep = tokens / static_cast<double>(std::max<std::size_t>(all.size(), 1));
    metrics[result::kTokensPerSecond.key] = typical > 0 ? perStep / typical : seconds > 0 ? tokens / seconds : 0;
    metrics[result::kTokens.key] = curves.tokens;
    metrics[result::kCheckpointsOnDevice.key] = curves.keptOnDevice;
    addPeakPlace(run, model);
}

void addPeakPlace(const Run& run, FinetuneModel& model) {
    run.metrics[result::kPeakAt.key] = model.model().context().memory().statistics().peakPlace.text();
}

namespace {

/// That a run writes at its end, from its folder on.
std::vector<std::string> resultFiles(const Run& run, const ModelSource& source) {
    std::vector<std::string> out;
    const auto addModel = [&](const std::string& place) {
        for (const char* name : {"config.json", "model.safetensors"}) {
            out.push_back(place + name);
        }
        for (const std::string& name : source.folder.empty() ? std::vector<std::string>() : smallFiles(source.folder)) {
            out.push_back(place + name);
        }
    };
    if (finetuneMethod(run.spec) == FinetuneMethod::Full) {
        addModel("");
        return out;
    }
    out.insert(out.end(), {"adapter_config.json", "adapter_model.safetensors"});
    if (run.spec.text("merge") != "none") {
        addModel("merged/");
    }
    return out;
}

} // namespace

TrainingOutputOptions trainingOutputOptions(const Run& run, const ModelSource& source, bool computesValues,
                                            std::vector<std::string> columns) {
    TrainingOutputOptions out;
    out.folder = computesValues ? run.spec.text("output") : "";
    out.resume = run.spec.text("resume");
    out.overwrite = run.spec.flag("overwrite");
    out.saveEvery = run.spec.integer("save_every");
    out.keepCheckpoints = run.spec.integer("keep_checkpoints");
    out.columns = {"loss", "learning_rate", "grad_norm", "tokens_per_second"};
    out.columns.insert(out.columns.end(), columns.begin(), columns.end());
    if (!out.folder.empty()) {
        out.resultFiles = resultFiles(run, source);
    }
    out.locks = run.locks;
    return out;
}

} // namespace vitrine::engine
