// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/active_request.h"

#include <algorithm>

namespace vitrine::engine {
namespace {

constexpr float kForce = 1e30F; ///< above every finite logit that a model gives

} // namespace

Sampling fromGenerationConfig(const GenerationConfig& config) {
    Sampling out;
    out.temperature = static_cast<float>(config.temperature);
    out.topK = config.topK;
    out.topP = static_cast<float>(config.topP);
    out.minP = static_cast<float>(config.minP);
    out.repetitionPenalty = static_cast<float>(config.repetitionPenalty);
    return out;
}

FinishReason finishReasonOf(const base::Error& error) {
    switch (error.kind()) {
    case base::ErrorKind::Cancelled:
        return FinishReason::Cancelled;
    case base::ErrorKind::OutOfMemory:
        return FinishReason::OutOfMemory;
    default:
        return FinishReason::Failed;
    }
}

bool isComplete(FinishReason reason) {
    return reason == FinishReason::Length || reason == FinishReason::Context || reason == FinishReason::StopToken ||
           reason == FinishReason::StopText;
}

std::string_view finishReasonName(FinishReason reason) {
    switch (reason) {
    case FinishReason::Length:
        return "length";
    case FinishReason::Context:
        return "context";
    case FinishReason::StopToken:
        return "stop_token";
    case FinishReason::StopText:
        return "stop_text";
    case FinishReason::Cancelled:
        return "cancelled";
    case FinishReason::OutOfMemory:
        return "out_of_memory";
    case FinishReason::Failed:
        return "failed";
    case FinishReason::None:
        break;
    }
    return "unfinished";
}

ActiveRequest::ActiveRequest(GenerateRequest request, std::int32_t number, GenerateResult& result,
                             std::shared_ptr<const Tokenizer> tokenizer, AnswerForm answerForm)
    : request_(std::move(request)), number_(number), result_(&result), history_(request_.prompt) {
    result_->promptTokens = static_cast<std::int64_t>(request_.prompt.size());
    if (request_.returnsExperts) {
        experts_.emplace(result_->experts);
    }
    forbidden_ = request_.forbidden;
    if (request_.minNewTokens > 0) {
        forbidden_.insert(forbidden_.end(), request_.stopTokens.begin(), request_.stopTokens.end());
    }
    for (std::size_t i = 1; request_.scoresPrompt && i < request_.prompt.size(); ++i) {
        forcing_.push_back({request_.prompt[i], kForce});
    }
    if (tokenizer != nullptr) {
        answer_.emplace(request_.answerForm.value_or(answerForm), std::move(tokenizer), request_.stopTexts);
    }
}

void ActiveRequest::addToDraft(std::int32_t id) {
    history_.push_back(id);
    ++drafted_;
}

void ActiveRequest::fillDraft(std::int64_t tokens) {
    const auto count = static_cast<std::size_t>(tokens);
    history_.resize(history_.size() + count, history_.back());
    drafted_ += count;
    fillers_ += count;
}

void ActiveRequest::dropDraft() {
    history_.resize(history_.size() - drafted_);
    drafted_ = 0;
    fillers_ = 0;
}

kernels::SampleParameters ActiveRequest::sampling(std::int64_t ahead) const {
    const Sampling& sampling = request_.sampling;
    kernels::SampleParameters p;
    p.temperature = sampling.temperature;
    p.topK = sampling.topK;
    p.topP = sampling.topP;
    p.minP = sampling.minP;
    p.repetitionPenalty = sampling.repetitionPenalty;
    p.frequencyPenalty = sampling.frequencyPenalty;
    p.presencePenalty = sampling.presencePenalty;
    p.bias = sampling.bias;
    p.promptTokens = result_->promptTokens;
    p.seed = sampling.seed;
    p.request = request_.samplingNumber.value_or(static_cast<std::uint32_t>(number_));
    const auto known = static_cast<std::int64_t>(history().size());
    p.position = known + ahead;
    p.history = history_.data();
    p.historyLength = known + std::min(ahead, static_cast<std::int64_t>(drafted_));
    const bool early = static_cast<std::int64_t>(result_->ids.size()) + ahead < request_.minNewTokens;
    p.forbidden = forbidden_.data();
    p.forbiddenCount = static_cast<std::int64_t>(early ? forbidden_.size() : request_.forbidden.size());
    return p;
}

bool ActiveRequest::lacksScore(std::int64_t position) const {
    return position >= std::ssize(result_->promptScores) && position < std::ssize(forcing_);
}

kernels::SampleParameters ActiveRequest::scoring(std::int64_t position) const {
    kernels::SampleParameters p;
    p.bias = std::span(forcing_).subspan(static_cast<std::size_t>(position), 1);
    return p;
}

/// A preempted request may read tokens again whose scores came meanwhile.
void ActiveRequest::takeScore(std::int64_t position, PromptScore score) {
    if (position == std::ssize(result_->promptScores)) {
        result_->promptScores.push_back(std::move(score));
    }
}

void ActiveRequest::takeDraw(float drawLogprob, float temperedLogprob) {
    result_->drawLogprobs.push_back(drawLogprob);
    result_->temperedLogprobs.push_back(temperedLogprob);
}

TakenToken ActiveRequest::take(kernels::Tracer& tracer, std::int32_t id, float logprob,
                               std::vector<std::pair<std::int32_t, float>> top) {
    dropDraft();
    TakenToken taken;
    GeneratedToken& token = taken.token;
    token.request = number_;
    token.index = static_cast<std::int32_t>(result_->ids.size());
    token.id = id;
    token.logprob = logprob;
    token.top = top;
    tracer.record(base::TokenEvent{tracer.now(), number_, static_cast<std::int32_t>(history_.size()), id, logprob});
    history_.push_back(id);
    result_->ids.push_back(id);
    result_->logprobs.push_back(logprob);
    if (!top.empty()) {
        result_->top.push_back(std::move(top));
    }

    AnswerPiece piece;
    if (answer_) {
        piece = answer_->push(id);
    }
    const auto& stops = request_.stopTokens;
    if (answer_ && answer_->stopped()) {
        taken.finish = FinishReason::StopText;
    } else if (std::find(stops.begin(), stops.end(), id) != stops.end()) {
        taken.finish = FinishReason::StopToken;
    } else if (remaining() <= 0) {
        taken.finish = request_.cutToContext ? FinishReason::Context : FinishReason::Length;
    }
    if (answer_ && taken.finish != FinishReason::None && !answer_->stopped()) {
        const AnswerPiece rest = answer_->finish();
        piece.text += rest.text;
        piece.channel = rest.channel;
    }
    token.text = std::move(piece.text);
    token.channel = std::move(piece.channel);
    return taken;
}

void ActiveRequest::takeExperts(std::int64_t position, std::int64_t tokens, const ExpertChoices& step,
                                std::int64_t row) {
    if (experts_) {
        experts_->note(position, tokens, step, row);
    }
}

/// Of the prompt and the new tokens: all but the last new one.
std::int64_t ActiveRequest::tokensToRead() const {
    const auto taken = static_cast<std::int64_t>(result_->ids.size());
    return result_->promptTokens + std::max<std::int64_t>(taken - 1, 0);
}

void ActiveRequest::skip(std::int64_t tokens) {
    history_.resize(history_.size() + static_cast<std::size_t>(tokens));
    result_->ids.resize(result_->ids.size() + static_cast<std::size_t>(tokens));
    result_->logprobs.resize(result_->ids.size());
    if (request_.drawLogprobs) {
        result_->drawLogprobs.resize(result_->ids.size());
        result_->temperedLogprobs.resize(result_->ids.size());
    }
    if (experts_) {
        experts_->skipTo(tokensToRead());
    }
}

void ActiveRequest::end(FinishReason finish) {
    abandon(finish);
    history_ = {};
    drafted_ = 0;
    fillers_ = 0;
}

void ActiveRequest::abandon(FinishReason reason) {
    if (!done()) {
        result_->finish = reason;
    }
    if (answer_) {
        result_->channels = answer_->channels();
    }
    if (experts_) {
        experts_->finish(tokensToRead());
    }
}

} // namespace vitrine::engine
