// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One request that is being served: its prompt and limits, its answer so far, how its next token is chosen and when it
// ends.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/generation/answer_text.h"
#include "engine/generation/generator.h"
#include "kernels/core/tracer.h"

namespace vitrine::engine {

/// A token that was added to a request's answer. `finish` is the reason why the request ends with this token; None: the
/// request goes on.
struct TakenToken {
    GeneratedToken token; ///< without a time
    FinishReason finish = FinishReason::None;
};

class ActiveRequest {
public:
    /// `number` identifies the request in results and in the trace; it is also the request number of sampling, unless
    /// the request names another. `result` must outlive this object and is filled in as tokens come. `tokenizer` may be
    /// null: texts are then empty. `chatFormat` is used when the request names no chat format.
    ActiveRequest(GenerateRequest request, std::int32_t number, GenerateResult& result,
                  std::shared_ptr<const Tokenizer> tokenizer, ChatFormatKind chatFormat);
    ~ActiveRequest() = default;
    ActiveRequest(const ActiveRequest&) = delete; // sample parameters view its history
    ActiveRequest& operator=(const ActiveRequest&) = delete;

    const GenerateRequest& request() const { return request_; }
    std::int32_t number() const { return number_; }
    const GenerateResult& result() const { return *result_; }
    /// The prompt and the new tokens; empty once the request has ended.
    const std::vector<std::int32_t>& history() const { return history_; }
    bool done() const { return result_->finish != FinishReason::None; }
    /// New tokens that may still come.
    std::int64_t remaining() const { return request_.maxNewTokens - static_cast<std::int64_t>(result_->ids.size()); }

    /// How the next token is chosen. `pending` is the number of tokens of the request that a pending step samples. The
    /// result views the request and its history.
    kernels::SampleParameters sampling(std::int64_t pending = 0) const;
    /// Adds a sampled token to the result and the history and reports it to the trace. Does not end the request.
    TakenToken take(kernels::Tracer& tracer, std::int32_t id, float logprob,
                    std::vector<std::pair<std::int32_t, float>> top = {});
    /// Adds `tokens` tokens that are not computed (on Meta). Their ids and logprobs are 0.
    void skip(std::int64_t tokens);
    /// Ends the request, completes the texts of its result and frees the history.
    void end(FinishReason finish);
    /// Called when the run ends. Gives `reason` to a request that has not ended; a request that has ended keeps its
    /// reason. Completes the texts of the result.
    void abandon(FinishReason reason);

private:
    GenerateRequest request_;
    std::int32_t number_;
    GenerateResult* result_;
    std::vector<std::int32_t> history_;
    std::optional<AnswerText> answer_;
};

} // namespace vitrine::engine
