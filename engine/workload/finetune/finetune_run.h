// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One fine-tuning run, or the part of it that a plan prices: the model with what is trained, and the loop over steps.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "engine/training/adapters/adapter.h"
#include "engine/training/passes/learning_rate.h"
#include "engine/training/passes/trainer.h"
#include "engine/training/quantized/packed_copies.h"
#include "engine/training/run/training_run.h"
#include "engine/workload/finetune/finetune_data.h"
#include "engine/workload/finetune/fixed_prompts.h"
#include "engine/workload/finetune/resume_terms.h"

namespace vitrine::engine {

enum class FinetuneMethod : std::uint8_t { Full, Lora, Qlora };
FinetuneMethod finetuneMethod(const Experiment& experiment);

/// How `qat` packs weights; nothing: they are not quantized. Throws BadInput that begins with the option.
std::optional<WeightPacking> qatPacking(const Experiment& experiment);

/// How the options turn techniques on for batches of this many tokens.
MemoryTechniques memoryTechniques(const Run& run, const ModelConfig& config, kernels::Context& context,
                                  std::int64_t tokens);

/// "layer": the value of the option checkpoint.
std::string_view checkpointingName(const MemoryTechniques& techniques);

/// The model and its trained tensors.
class FinetuneModel {
public:
    /// Loads the model, adds the adapter and makes the state of the optimizer.
    FinetuneModel(const Run& run, const ModelSource& source, kernels::Context& context);

    Model& model() { return *model_; }
    TrainedState& state() { return *state_; }
    Adapter* adapter() const { return adapter_.get(); }    ///< null with full fine-tuning
    PackedCopies* packed() const { return packed_.get(); } ///< null where nothing is packed while it trains
    /// Whether weights are trained as the option qat rounds them.
    bool quantizes() const { return quantizes_; }
    /// What an adapter's files say beside its values.
    const AdapterConfig& adapterConfig() const { return adapterConfig_; }
    /// The files of the adapter that training began with; null with a new one.
    const AdapterFile* adapterBefore() const { return adapterBefore_.get(); }
    /// All parameters, those of the adapter included.
    std::int64_t parameters() const;

private:
    void chooseWeights(const Run& run, const ModelSource& source);
    void packWeights(const Run& run, const ModelSource& source, std::vector<TrainedTensor> tensors);
    void addAdapter(const Run& run, const ModelSource& source);
    void packBesideAdapter(const Run& run, const ModelSource& source);
    void continueAdapter(const std::string& folder);
    void refuseDropoutOfExperts() const;
    void refuseMergeOfTiedEmbedding(const Run& run) const;

    std::unique_ptr<Model> model_;
    std::unique_ptr<Adapter> adapter_;
    AdapterConfig adapterConfig_;
    std::unique_ptr<AdapterFile> adapterBefore_;
    std::unique_ptr<TrainedState> state_;
    std::unique_ptr<PackedCopies> packed_;
    bool quantizes_ = false;
};

/// While it lives, the model computes with the masters of weights that are quantized, or with its own weights and the
/// adapter beside them.
class UnquantizedWeights {
public:
    explicit UnquantizedWeights(FinetuneModel& model);
    ~UnquantizedWeights();
    UnquantizedWeights(const UnquantizedWeights&) = delete; // one of them puts the values back
    UnquantizedWeights& operator=(const UnquantizedWeights&) = delete;

private:
    FinetuneModel& model_;
};

/// How the options say it, over the steps of a run.
LearningRate learningRate(const Run& run, std::int64_t steps);
/// Writes the gradients of what is trained to the file of the option save_gradients.
void saveGradients(const Run& run, FinetuneModel& model);
/// trained_parameters, trained_share, steps.
void addTrainedMetrics(const Run& run, FinetuneModel& model, std::int64_t steps);
/// What the trace says of a training before its first step.
void traceTraining(FinetuneModel& model, std::int64_t steps);
/// The numbers of the steps, and where memory was at its peak.
void addCurveMetrics(const Run& run, FinetuneModel& model, const TrainingCurves& curves);
/// Where memory was at its peak until now.
void addPeakPlace(const Run& run, FinetuneModel& model);
/// What a run that is to be written does with its folder. `columns`: of a step, after those of every training.
TrainingOutputOptions trainingOutputOptions(const Run& run, const ModelSource& source, bool computesValues,
                                            std::vector<std::string> columns = {});

/// The loop. Fills run.metrics with losses and rates as steps end.
class FinetuneLoop {
public:
    FinetuneLoop(const Run& run, const ModelSource& source, FinetuneModel& model, FinetuneData& data);

    void run();
    /// Seconds of the last step.
    double stepSeconds() const { return training_.curves().seconds.empty() ? 0 : training_.curves().seconds.back(); }

private:
    void steps();
    void catchUp();
    bool evaluates(std::int64_t step) const;
    double lossOfEvaluation(std::int64_t number);
    void step(std::int64_t number);
    void evaluate(std::int64_t number);
    void answer(std::int64_t number);
    nlohmann::json progress() const;
    TrainedRows trainedRows() const;
    void resume();
    void report(const TrainingStep& step, std::int64_t number);
    void addQuantizedLosses();
    void addMetrics();

    const Run& run_;
    const ModelSource& source_;
    FinetuneModel& model_;
    FinetuneData& data_;
    Trainer trainer_;
    FixedPrompts prompts_;
    TrainingOutput output_;
    TrainingRun training_;
    std::shared_ptr<const nlohmann::json> terms_; ///< null where nothing is written
    std::vector<double> evalLosses_;
    std::vector<std::int64_t> evalSteps_;
};

} // namespace vitrine::engine
