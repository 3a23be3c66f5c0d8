// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// How a fine-tuning run saves where it is, and goes on from there.

#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/training/files/training_checkpoint.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_run.h"
#include "engine/workload/finetune/resume_terms.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

[[noreturn]] void failProgress(const std::string& checkpoint, std::string_view field, std::string_view what) {
    throw base::BadInput(
        fmt::format("{}/trainer_state.json: {}: {}; use an earlier checkpoint", checkpoint, field, what));
}

/// A list of numbers; with `count`, of so many.
template <class Number>
void takeNumbers(std::vector<Number>& out, const Json& progress, const char* field, const std::string& checkpoint,
                 std::optional<std::int64_t> count) {
    const auto found = progress.find(field);
    if (found == progress.end() || !found->is_array()) {
        failProgress(checkpoint, field, "is missing or is no list");
    }
    out.clear();
    for (const Json& value : *found) {
        // A loss that is not finite is null in JSON.
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

void FinetuneLoop::save(std::int64_t number) {
    if (!output_.isWritten()) {
        return;
    }
    const base::TimeNs begin = model_.model().context().tracer().now();
    const Json progress = {
        {"losses", losses_},         {"grad_norms", norms_},           {"aux_losses", auxLosses_},
        {"learning_rates", rates_},  {"codes_changed", codesChanged_}, {"eval_losses", evalLosses_},
        {"eval_steps", evalSteps_},  {"answers", prompts_.answers()},  {"terms", terms_ != nullptr ? *terms_ : Json()},
        {"spec", run_.spec.toJson()}};
    const std::vector<std::int64_t> dropped = output_.save(number, model_.model().context(), model_.state(), progress);
    savedStep_ = number;
    mark(base::TrainingMark::Saved, begin, number);
    for (const std::int64_t step : dropped) {
        mark(base::TrainingMark::Dropped, model_.model().context().tracer().now(), step);
    }
}

void FinetuneLoop::resume() {
    if (!run_.spec.has("resume")) {
        return;
    }
    const std::string folder = findTrainingCheckpoint(run_.spec.text("resume"));
    if (!model_.model().context().can().computesValues) {
        return; // what a step holds does not depend on its number
    }
    const Json progress = readTrainingProgress(folder);
    const std::string output = run_.spec.text("output");
    checkResumeTerms(progress.value("terms", Json()),
                     terms_ == nullptr ? resumeTerms(run_, source_, model_, data_) : *terms_, folder,
                     !output.empty() && !goesOnIn(folder, output));
    const auto done = progress.at("step").get<std::int64_t>();
    if (done > steps_) {
        throw base::BadInput(fmt::format(
            "resume: {} has {} steps already, and steps asks for {}; ask for as many or more", folder, done, steps_));
    }
    takeNumbers(losses_, progress, "losses", folder, done);
    takeNumbers(norms_, progress, "grad_norms", folder, done);
    takeNumbers(auxLosses_, progress, "aux_losses", folder, done);
    takeNumbers(rates_, progress, "learning_rates", folder, done);
    if (progress.contains("codes_changed")) { // which checkpoints of runs without quantization may lack
        takeNumbers(codesChanged_, progress, "codes_changed", folder, std::nullopt);
    }
    takeNumbers(evalSteps_, progress, "eval_steps", folder, std::nullopt);
    takeNumbers(evalLosses_, progress, "eval_losses", folder, static_cast<std::int64_t>(evalSteps_.size()));
    readTrainedState(folder, model_.model().context(), model_.state());
    prompts_.resume(progress.value("answers", Json::array())); // which a checkpoint of a run without prompts lacks
    first_ = done + 1;
    savedStep_ = goesOnIn(folder, output) ? done : 0;
    run_.metrics[result::kResumedFromStep.key] = done;
    mark(base::TrainingMark::Resumed, model_.model().context().tracer().now(), done);
}

} // namespace vitrine::engine
