// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a fine-tuning run keeps in a checkpoint beside its steps, and how it goes on from there.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/checkpoint/output_check.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_run.h"
#include "engine/workload/finetune/resume_terms.h"

namespace vitrine::engine {

using Json = nlohmann::json;

TrainedRows FinetuneLoop::trainedRows() const {
    return {data_.rowsDigest(), data_.microBatch(), data_.steps()};
}

Json FinetuneLoop::progress() const {
    return {{"eval_losses", evalLosses_},
            {"eval_steps", evalSteps_},
            {"answers", prompts_.answers()},
            {"terms", terms_ != nullptr ? *terms_ : Json()},
            {"spec", run_.spec.toJson()}};
}

void FinetuneLoop::resume() {
    const auto take = [this](const Json& progress, const std::string& checkpoint) {
        const std::string output = run_.spec.text("output");
        checkResumeTerms(progress.value("terms", Json()),
                         terms_ == nullptr ? resumeTerms(run_, source_, model_, trainedRows()) : *terms_, checkpoint,
                         !output.empty() && !goesOnIn(checkpoint, output));
        takeNumbers(evalSteps_, progress, "eval_steps", checkpoint, std::nullopt);
        takeNumbers(evalLosses_, progress, "eval_losses", checkpoint, static_cast<std::int64_t>(evalSteps_.size()));
        prompts_.resume(progress.value("answers", Json::array())); // which a checkpoint of a run without prompts lacks
    };
    if (training_.resume(take)) {
        run_.metrics[result::kResumedFromStep.key] = training_.first() - 1;
    }
}

} // namespace vitrine::engine
