// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/run/training_run.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/output_check.h"
#include "engine/training/files/training_checkpoint.h"
#include "engine/training/quantized/packed_copies.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

[[noreturn]] void failProgress(const std::string& checkpoint, std::string_view field, std::string_view what) {
    throw base::BadInput(
        fmt::format("{}/trainer_state.json: {}: {}; use an earlier checkpoint", checkpoint, field, what));
}

template <class Number>
void takeList(std::vector<Number>& out, const Json& progress, const char* field, const std::string& checkpoint,
              std::optional<std::int64_t> count) {
    const auto found = progress.find(field);
    if (found == progress.end() || !found->is_array()) {
        failProgress(checkpoint, field, "is missing or is no list");
    }
    out.clear();
    for (const Json& value : *found) {
        const bool whole = std::is_integral_v<Number>;
        if (whole ? !value.is_number_integer() : !value.is_number() && !value.is_null()) {
            failProgress(checkpoint, field,
                         fmt::format("value {} is no {}", out.size() + 1, whole ? "whole number" : "number"));
        }
        out.push_back(value.is_null() ? std::numeric_limits<Number>::quiet_NaN() : value.get<Number>());
    }
    if (count && std::cmp_not_equal(out.size(), *count)) {
        failProgress(checkpoint, field, fmt::format("has {} numbers for {} steps", out.size(), *count));
    }
}

} // namespace

void takeNumbers(std::vector<double>& out, const Json& progress, const char* field, const std::string& checkpoint,
                 std::optional<std::int64_t> count) {
    takeList(out, progress, field, checkpoint, count);
}

void takeNumbers(std::vector<std::int64_t>& out, const Json& progress, const char* field, const std::string& checkpoint,
                 std::optional<std::int64_t> count) {
    takeList(out, progress, field, checkpoint, count);
}

TrainingRun::TrainingRun(kernels::Context& context, TrainedState& state, Trainer& trainer, PackedCopies* packed,
                         TrainingOutput& output, TrainingRunOptions options)
    : context_(context), state_(state), trainer_(trainer), packed_(packed), output_(output),
      options_(std::move(options)) {
    if (packed_ != nullptr) {
        trainer_.setPreparation([copies = packed_] { copies->refresh(); });
    }
}

bool TrainingRun::resume(const std::function<void(const Json& progress, const std::string& checkpoint)>& take) {
    const TrainingOutputOptions& options = output_.options();
    if (options.resume.empty()) {
        return false;
    }
    const std::string checkpoint = findTrainingCheckpoint(options.resume);
    if (!context_.can().computesValues) {
        return false; // what a step holds does not depend on its number
    }
    const Json progress = readTrainingProgress(checkpoint);
    take(progress, checkpoint);
    const auto done = progress.at("step").get<std::int64_t>();
    if (done > steps()) {
        throw base::BadInput(
            fmt::format("resume: {} has {} steps already, and steps asks for {}; ask for as many or more", checkpoint,
                        done, steps()));
    }
    read(progress, checkpoint);
    first_ = done + 1;
    savedStep_ = goesOnIn(checkpoint, options.folder) ? done : 0;
    mark(base::TrainingMark::Resumed, context_.tracer().now(), done);
    return true;
}

void TrainingRun::read(const Json& progress, const std::string& checkpoint) {
    const auto done = progress.at("step").get<std::int64_t>();
    takeNumbers(curves_.losses, progress, "losses", checkpoint, done);
    takeNumbers(curves_.gradientNorms, progress, "grad_norms", checkpoint, done);
    takeNumbers(curves_.auxLosses, progress, "aux_losses", checkpoint, done);
    takeNumbers(curves_.learningRates, progress, "learning_rates", checkpoint, done);
    if (progress.contains("codes_changed")) { // which checkpoints of runs without quantization may lack
        takeNumbers(curves_.codesChanged, progress, "codes_changed", checkpoint, std::nullopt);
    }
    readTrainedState(checkpoint, context_, state_);
}

void TrainingRun::run(const TrainingWork& work) {
    try {
        work.steps();
        work.report();
        holdFolder();
        saveResult(work.save);
    } catch (const base::Cancelled&) {
        keepState(); // that of the last whole step
        work.report();
        throw;
    } catch (...) {
        work.report();
        throw;
    }
}

/// What was trained is not lost with the result of it.
void TrainingRun::saveResult(const std::function<void()>& save) {
    try {
        save();
    } catch (const base::Cancelled&) {
        throw;
    } catch (const base::Error& error) {
        base::logWarning(fmt::format("the result is not written and evaluated whole: {}", error.message()));
        keepState();
        throw;
    }
}

TrainingStep TrainingRun::step(std::int64_t number, std::span<const TrainingBatch> batches, Objective& objective,
                               const std::function<void()>& beforeUpdate) {
    const base::TimeNs begin = context_.tracer().now();
    const double rate = options_.rate.at(number - 1);
    const TrainingStep done = trainer_.step(batches, objective, rate, number, beforeUpdate);
    const bool values = context_.can().computesValues;
    if (values) { // also of a step whose loss is not finite: where a run failed is seen in its curves
        context_.tracer().record(base::TrainingStepEvent{begin, context_.tracer().now(), number, done.tokens, done.loss,
                                                         rate, done.gradientNorm});
    }
    // Where they are not, the state is spoiled; checkpoints of earlier steps are not.
    requireFinite("loss", done.loss, number);
    requireFinite("gradient norm", done.gradientNorm, number);
    if (packed_ != nullptr && values) {
        curves_.codesChanged.push_back(packed_->changedShare());
        context_.tracer().counter("codes_changed", curves_.codesChanged.back());
    }
    return done;
}

void TrainingRun::requireFinite(std::string_view what, double value, std::int64_t step) {
    if (!std::isfinite(value)) {
        throw base::BadInput(
            fmt::format("lr: the {} is {} at step {}; try a smaller one, or check the model's weights and the data",
                        what, value, step));
    }
}

void TrainingRun::report(const TrainingStep& step, std::int64_t number, std::span<const double> more) {
    curves_.losses.push_back(step.loss);
    curves_.gradientNorms.push_back(step.gradientNorm);
    curves_.auxLosses.push_back(step.auxLoss);
    curves_.learningRates.push_back(options_.rate.at(number * options_.updates - 1));
    curves_.seconds.push_back(step.seconds);
    curves_.tokens += step.tokens;
    curves_.keptOnDevice = std::max(curves_.keptOnDevice, step.keptOnDevice);
    std::vector<double> row = {step.loss, curves_.learningRates.back(), step.gradientNorm, step.tokensPerSecond()};
    row.insert(row.end(), more.begin(), more.end());
    try {
        output_.writeStep(number, row);
    } catch (const base::Error&) {
        keepState();
        throw;
    }
}

void TrainingRun::saveIfDue(std::int64_t number, bool asked) {
    const std::int64_t every = output_.options().saveEvery;
    if (asked || (every > 0 && number % every == 0)) {
        save(number);
    }
}

void TrainingRun::keepState() {
    if (curves_.steps() > 0 && savedStep_ != curves_.steps()) {
        save(curves_.steps());
    }
}

/// What was saved in a folder that another run has taken meanwhile is gone with it.
void TrainingRun::holdFolder() {
    try {
        output_.holdFolder();
    } catch (const base::Error&) {
        savedStep_ = 0;
        keepState();
        throw;
    }
}

void TrainingRun::mark(base::TrainingMark kind, base::TimeNs begin, std::int64_t step, double value) {
    if (context_.can().computesValues) {
        context_.tracer().record(base::TrainingMarkEvent{begin, context_.tracer().now(), step, kind, value});
    }
}

void TrainingRun::save(std::int64_t number) {
    if (!output_.isWritten()) {
        return;
    }
    const base::TimeNs begin = context_.tracer().now();
    Json progress = options_.progress ? options_.progress() : Json::object();
    progress["losses"] = curves_.losses;
    progress["grad_norms"] = curves_.gradientNorms;
    progress["aux_losses"] = curves_.auxLosses;
    progress["learning_rates"] = curves_.learningRates;
    progress["codes_changed"] = curves_.codesChanged;
    const std::vector<std::int64_t> dropped = output_.save(number, context_, state_, progress);
    savedStep_ = number;
    mark(base::TrainingMark::Saved, begin, number);
    for (const std::int64_t step : dropped) {
        mark(base::TrainingMark::Dropped, context_.tracer().now(), step);
    }
}

} // namespace vitrine::engine
