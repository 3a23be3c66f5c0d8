// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A training from its first step to its last, whatever its objective is: learning rates, the numbers of its steps,
// events of the trace, checkpoints, and how it goes on from one. A workload makes the batches and says what is wanted.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "engine/training/passes/learning_rate.h"
#include "engine/training/passes/trainer.h"
#include "engine/training/run/training_output.h"

namespace vitrine::engine {

class PackedCopies;

/// The numbers of a training's steps. Those of a step that a checkpoint has are among them, but for seconds and tokens.
struct TrainingCurves {
    std::vector<double> losses, auxLosses, gradientNorms, learningRates;
    std::vector<double> codesChanged; ///< see PackedCopies::changedShare(); empty where nothing is packed
    std::vector<double> seconds;
    std::int64_t tokens = 0;
    std::size_t keptOnDevice = 0; ///< see TrainingStep, the most of any step

    std::int64_t steps() const { return static_cast<std::int64_t>(losses.size()); }
};

struct TrainingRunOptions {
    std::int64_t steps = 0;
    LearningRate rate;
    /// What a checkpoint keeps beside the numbers of the steps: an object. Called when one is written.
    std::function<nlohmann::json()> progress;
    std::int64_t updates = 1; ///< of the optimizer in a step; `rate` and step() count updates, the others steps
};

/// The parts of a training, one after the other.
struct TrainingWork {
    std::function<void()> steps;
    std::function<void()> report; ///< says what the steps gave, also of those before a failure
    std::function<void()> save;   ///< writes what was trained
};

/// Belongs to the thread of the context. All but the options outlive it.
class TrainingRun {
public:
    TrainingRun(kernels::Context& context, TrainedState& state, Trainer& trainer, PackedCopies* packed,
                TrainingOutput& output, TrainingRunOptions options);

    std::int64_t first() const { return first_; } ///< step; after a resumed checkpoint: its step + 1
    std::int64_t steps() const { return options_.steps; }
    const TrainingCurves& curves() const { return curves_; }

    /// Goes on from the checkpoint that the output's options name: reads the state and the numbers. `take` gets what
    /// the checkpoint says and its folder before that: it compares, and takes what TrainingRunOptions::progress gave.
    /// Throws BadInput. False: there is nothing to go on from. On a device that computes no values only the name is
    /// checked.
    bool resume(const std::function<void(const nlohmann::json& progress, const std::string& checkpoint)>& take);
    /// Does the work. Of one that is stopped, or cannot save what was trained, the state after the last whole step is
    /// kept. Throws what the work throws.
    void run(const TrainingWork& work);
    /// Takes the update `number` and reports it to the trace. Throws what Trainer::step() throws, and BadInput when a
    /// number is not finite. report() follows once for each step.
    TrainingStep step(std::int64_t number, std::span<const TrainingBatch> batches, Objective& objective,
                      const std::function<void()>& beforeUpdate = {});
    /// Adds the step to the curves and to the output, whose columns are loss, learning rate, norm of the gradients,
    /// tokens per second and `more`. Where the output fails, the state is saved first.
    void report(const TrainingStep& step, std::int64_t number, std::span<const double> more = {});
    /// Saves where a checkpoint is due after this step, or `asked` for.
    void saveIfDue(std::int64_t number, bool asked);
    /// Saves the state after the last whole step where it is not saved yet: of a run that ends itself.
    void keepState();
    /// Reports something that happened beside the steps, since `begin`.
    void mark(base::TrainingMark kind, base::TimeNs begin, std::int64_t step, double value = 0);
    /// Throws BadInput that names the learning rate.
    static void requireFinite(std::string_view what, double value, std::int64_t step);

private:
    void holdFolder();
    void saveResult(const std::function<void()>& save);
    void save(std::int64_t number);
    void read(const nlohmann::json& progress, const std::string& checkpoint);

    kernels::Context& context_;
    TrainedState& state_;
    Trainer& trainer_;
    PackedCopies* packed_; ///< null where nothing is packed while it trains
    TrainingOutput& output_;
    TrainingRunOptions options_;
    TrainingCurves curves_;
    std::int64_t first_ = 1;
    std::int64_t savedStep_ = 0; ///< of the newest checkpoint that this run wrote or goes on from
};

/// Takes over a list of numbers that a checkpoint keeps; with `count`, of so many. A number that is not finite is null
/// there. Throws BadInput that names the file and the field.
void takeNumbers(std::vector<double>& out, const nlohmann::json& progress, const char* field,
                 const std::string& checkpoint, std::optional<std::int64_t> count);
void takeNumbers(std::vector<std::int64_t>& out, const nlohmann::json& progress, const char* field,
                 const std::string& checkpoint, std::optional<std::int64_t> count);

} // namespace vitrine::engine
