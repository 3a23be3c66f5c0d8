// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a BatchEngine knows of a request and of a step: shared by its source files.

#include "engine/generation/batch_engine.h"
#include "engine/generation/request_rows.h"

namespace vitrine::engine {

/// One request on its way.
struct BatchEngine::Row {
    BatchResult out;
    GenerateRequest request;
    std::int32_t number = 0;
    std::vector<std::int32_t> history; ///< prompt and new tokens
    std::int64_t computed = 0;         ///< tokens that were in the cache at some time
    std::optional<AnswerText> answer;
    bool shares = false; ///< it found tokens of its prompt in known pages

    bool done() const { return out.result.finish != FinishReason::None || !out.refusal.empty(); }
};

/// A step from its plan to its tokens.
struct BatchEngine::Flight {
    BatchPlan plan;
    BatchMoment moment;
    bool decodes = false; ///< single tokens only
    bool known = true;    ///< but for ids that the device carries over
    std::int32_t fill = 0;
    base::TimeNs launched = 0;
    StepBatch batch;
    std::vector<kernels::SampleParameters> sampling;
    std::vector<CarriedIds> carried;
    std::vector<std::int32_t> padding;
    std::vector<std::int32_t> sampled; ///< request of each row of logits, -1: nobody's
    const std::int32_t* ids = nullptr; ///< on the device
};

} // namespace vitrine::engine
