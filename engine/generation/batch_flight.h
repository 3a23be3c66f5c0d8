// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a BatchEngine knows of a request and of a step: shared by its source files.

#include "engine/generation/active_request.h"
#include "engine/generation/batch_engine.h"

namespace vitrine::engine {

/// A request and what a batch knows of it besides.
struct BatchEngine::Row {
    Row(GenerateRequest asked, std::int32_t number, std::shared_ptr<const Tokenizer> tokenizer,
        ChatFormatKind chatFormat)
        : request(std::move(asked), number, out.result, std::move(tokenizer), chatFormat) {}

    BatchResult out;
    ActiveRequest request;
    std::int64_t computed = 0; ///< tokens that were in the cache at some time
    bool shares = false;       ///< it found tokens of its prompt in known pages

    bool done() const { return request.done() || !out.refusal.empty(); }
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
