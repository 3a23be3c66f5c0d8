// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One request that is being served: its prompt and limits, its answer so far, how its next token is chosen and when it
// ends.

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/generation/answer_text.h"
#include "engine/generation/draft_pace.h"
#include "engine/generation/expert_record.h"
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
    /// null: texts are then empty. `answerForm` is used when the request names no chat format.
    ActiveRequest(GenerateRequest request, std::int32_t number, GenerateResult& result,
                  std::shared_ptr<const Tokenizer> tokenizer, AnswerForm answerForm);
    ~ActiveRequest() = default;
    ActiveRequest(const ActiveRequest&) = delete; // sample parameters view its history
    ActiveRequest& operator=(const ActiveRequest&) = delete;

    const GenerateRequest& request() const { return request_; }
    std::int32_t number() const { return number_; }
    const GenerateResult& result() const { return *result_; }
    /// The prompt and the new tokens; empty once the request has ended.
    std::span<const std::int32_t> history() const { return std::span(history_).first(history_.size() - drafted_); }
    /// Tokens that are guessed to follow the history. The next step checks them.
    std::span<const std::int32_t> draft() const { return std::span(history_).last(drafted_); }
    /// The history and the draft after it.
    std::span<const std::int32_t> historyAndDraft() const { return history_; }
    void addToDraft(std::int32_t id);
    /// Makes the draft longer by tokens that nobody guessed, so that the step has a size that a captured graph serves.
    /// They are never kept, whatever the model chooses. No call of addToDraft() may follow.
    void fillDraft(std::int64_t tokens);
    /// The draft without these.
    std::span<const std::int32_t> guesses() const { return draft().first(drafted_ - fillers_); }
    void dropDraft();
    /// How long its drafts are to be.
    DraftPace& pace() { return pace_; }
    bool done() const { return result_->finish != FinishReason::None; }
    /// New tokens that may still come.
    std::int64_t remaining() const { return request_.maxNewTokens - static_cast<std::int64_t>(result_->ids.size()); }

    /// How the token after `ahead` more tokens is chosen. These are the first tokens of the draft, or tokens that a
    /// pending step samples. The result views the request, its history and its draft.
    kernels::SampleParameters sampling(std::int64_t ahead = 0) const;
    /// Whether the result still lacks the log-probability of the token after this position of the prompt.
    bool lacksScore(std::int64_t position) const;
    /// For the logits at that position: the sample is the prompt's next token, whatever its logit, so that its
    /// log-probability is reported. The result views this object.
    kernels::SampleParameters scoring(std::int64_t position) const;
    /// Adds the score of the token after this position, unless the result has it.
    void takeScore(std::int64_t position, PromptScore score);
    /// Adds the log-probabilities of the draw whose token take() adds next. REQUIRES that the request asks for them.
    void takeDraw(float drawLogprob, float temperedLogprob);
    /// A step has read `tokens` tokens, the first one at `position`: their rows of the step's choices begin at `row`.
    void takeExperts(std::int64_t position, std::int64_t tokens, const ExpertChoices& step, std::int64_t row);
    /// Adds a sampled token to the result and the history and reports it to the trace. Drops the draft. Does not end
    /// the request.
    TakenToken take(kernels::Tracer& tracer, std::int32_t id, float logprob,
                    std::vector<std::pair<std::int32_t, float>> top = {});
    /// Adds `tokens` tokens that are not computed (on Meta). Their ids and log-probabilities are 0.
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
    std::vector<std::int32_t> history_;       ///< and the draft
    std::size_t drafted_ = 0;                 ///< tokens at the end of it that are the draft
    std::size_t fillers_ = 0;                 ///< the last of these, which nobody guessed
    std::vector<std::int32_t> forbidden_;     ///< never chosen ids, then those that must not come early
    std::vector<kernels::LogitBias> forcing_; ///< by position of a prompt that is scored: its next token
    DraftPace pace_;
    std::optional<AnswerText> answer_;
    std::optional<ExpertRecord> experts_; ///< where the request asks for them

    std::int64_t tokensToRead() const;
};

} // namespace vitrine::engine
