// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One request on its way: what was asked, what it has answered so far, how its next token is chosen and when it ends.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/generation/answer_text.h"
#include "engine/generation/generator.h"
#include "kernels/core/tracer.h"

namespace vitrine::engine {

/// A token that a request took. `finish` says whether the request ends with it; None: it goes on.
struct TakenToken {
    GeneratedToken token; ///< without a time
    FinishReason finish = FinishReason::None;
};

class ActiveRequest {
public:
    /// `number`: by which results, the trace and sampling know it. `result` must outlive it and is filled in as tokens
    /// come. `tokenizer` may be null: texts are then empty. `chatFormat` serves where the request names none.
    ActiveRequest(GenerateRequest request, std::int32_t number, GenerateResult& result,
                  std::shared_ptr<const Tokenizer> tokenizer, ChatFormatKind chatFormat);
    ActiveRequest(const ActiveRequest&) = delete; // sample parameters view its history
    ActiveRequest& operator=(const ActiveRequest&) = delete;

    const GenerateRequest& request() const { return request_; }
    std::int32_t number() const { return number_; }
    const GenerateResult& result() const { return *result_; }
    const std::vector<std::int32_t>& history() const {
        return history_;
    } ///< prompt and new tokens; empty once it ended
    bool done() const { return result_->finish != FinishReason::None; }
    /// New tokens that may still come.
    std::int64_t remaining() const { return request_.maxNewTokens - static_cast<std::int64_t>(result_->ids.size()); }
    /// Whether the choice of a token looks at the tokens before it, so that the host has to know them.
    bool needsHistory() const { return request_.sampling.repetitionPenalty != 1; }

    /// How the next token is chosen. `pending`: tokens that the device has sampled and the host has not read. Views the
    /// request and its history.
    kernels::SampleParameters sampling(std::int64_t pending = 0) const;
    /// A token was sampled: the trace is told, result and history have it from here on. Does not end the request.
    TakenToken take(kernels::Tracer& tracer, std::int32_t id, float logprob,
                    std::vector<std::pair<std::int32_t, float>> top = {});
    /// Tokens that are not computed (on Meta): their ids and logprobs are 0.
    void skip(std::int64_t tokens);
    /// It ends here.
    void end(FinishReason finish);
    /// The run ends before it did; nothing for one that has ended but that its texts are complete.
    void abandon(FinishReason reason);

private:
    GenerateRequest request_;
    std::int32_t number_;
    GenerateResult* result_;
    std::vector<std::int32_t> history_;
    std::optional<AnswerText> answer_;
};

} // namespace vitrine::engine
