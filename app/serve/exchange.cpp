// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/exchange.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

namespace vitrine::app {
namespace {

/// Why a request ended without its answer; nothing when it has one.
std::optional<ApiError> errorOf(const engine::BatchResult& result) {
    if (!result.refusal.empty()) {
        return ApiError(kBadRequest, result.refusal);
    }
    if (engine::isComplete(result.result.finish)) {
        return std::nullopt;
    }
    switch (result.result.finish) {
    case engine::FinishReason::Cancelled:
        return ApiError(kUnavailable, "the server stopped before the answer was complete", {}, "server_stopping");
    case engine::FinishReason::OutOfMemory:
        return result.failure.empty()
                   ? ApiError(kServerError, "the server ran out of memory and stops", {}, "out_of_memory")
                   : ApiError(kUnavailable,
                              "the server has no memory for this request; send a shorter one, or later: " +
                                  result.failure,
                              {}, "out_of_memory");
    default:
        return result.failure.empty() ? ApiError(kServerError, "the server failed and stops", {}, "server_failed")
                                      : ApiError(kServerError, result.failure, {}, "not_finite");
    }
}

} // namespace

/// The listener of one choice.
class Exchange::Choice final : public engine::RequestListener {
public:
    Choice(std::shared_ptr<Exchange> exchange, std::size_t index) : exchange_(std::move(exchange)), index_(index) {}
    void token(const engine::GeneratedToken& token) override { exchange_->token(index_, token); }
    void ended(const engine::BatchResult& result) override {
        exchange_->inbox_.done(this);
        exchange_->inbox_.metrics().ended(result);
        exchange_->ended(index_, result);
    }

private:
    std::shared_ptr<Exchange> exchange_;
    std::size_t index_;
};

Exchange::Exchange(ReplyHead head, bool stream, std::size_t choices, std::shared_ptr<const engine::Tokenizer> tokenizer,
                   Inbox& inbox)
    : head_(std::move(head)), stream_(stream), tokenizer_(std::move(tokenizer)), inbox_(inbox), choices_(choices),
      offsets_(choices), open_(choices) {
    for (std::size_t i = 0; stream_ && i < choices; ++i) {
        unsent_ += firstChunk(head_, i);
    }
}

std::vector<std::shared_ptr<engine::RequestListener>> Exchange::listeners() {
    std::vector<std::shared_ptr<engine::RequestListener>> out;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        const auto choice = std::make_shared<Choice>(shared_from_this(), i);
        listeners_.push_back(choice);
        out.push_back(choice);
    }
    return out;
}

void Exchange::setEchoes(std::vector<std::shared_ptr<const PromptEcho>> echoes) {
    echoes_ = std::move(echoes);
    for (std::size_t i = 0; i < echoes_.size(); ++i) {
        const PromptEcho& echo = *echoes_[i];
        offsets_[i] = static_cast<std::int64_t>(echo.text.size());
        if (stream_) {
            unsent_ += echoChunk(head_, i, echo.text, echo.ids);
        } else {
            choices_[i].text = echo.text;
            choices_[i].ids = head_.tokenIds ? echo.ids : std::vector<std::int32_t>();
        }
    }
    mostUnsent_ += unsent_.size();
}

// --- the HTTP side

std::optional<Exchange::Reply> Exchange::reply(Sleeper& sleeper) {
    const std::lock_guard lock(mutex_);
    if (!over_) {
        sleeper_ = &sleeper;
        sleeper.sleep();
        return std::nullopt;
    }
    if (error_) {
        return Reply{error_->status, bodyText(errorBody(*error_)), error_};
    }
    return Reply{200, bodyText(replyObject(head_, choices_, usage_)), std::nullopt};
}

std::int64_t Exchange::read(char* out, std::size_t most, Sleeper& sleeper) {
    const std::lock_guard lock(mutex_);
    if (gone_) {
        return kBroken;
    }
    const std::size_t count = std::min(most, unsent_.size() - sent_);
    if (count == 0) {
        if (over_) {
            return kEnd;
        }
        sleeper_ = &sleeper;
        sleeper.sleep();
        return 0;
    }
    std::memcpy(out, unsent_.data() + sent_, count);
    sent_ += count;
    if (sent_ == unsent_.size()) {
        unsent_.clear();
        sent_ = 0;
    }
    return static_cast<std::int64_t>(count);
}

void Exchange::abandon() {
    std::vector<std::shared_ptr<const engine::RequestListener>> open;
    {
        const std::lock_guard lock(mutex_);
        if (gone_) {
            return;
        }
        gone_ = true;
        unsent_ = {};
        sent_ = 0;
        open = openChoices();
        over_ = true;
        wake();
    }
    inbox_.leave(open);
}

bool Exchange::abandoned() const {
    const std::lock_guard lock(mutex_);
    return gone_;
}

void Exchange::detach() {
    const std::lock_guard lock(mutex_);
    sleeper_ = nullptr;
}

// --- the run's side

ReplyPiece Exchange::pieceOf(std::size_t choice, const engine::GeneratedToken& token) const {
    const auto index = token.index + (echoes_.empty() ? 0 : std::ssize(echoes_[choice]->ids));
    ReplyPiece piece;
    piece.id = token.id;
    if (tokenizer_ == nullptr) {
        piece.text = tokenText(nullptr, index, token.id);
    } else {
        piece.text = token.text;
        piece.channel = token.channel;
    }
    if (head_.logprobs) {
        piece.logprob.text = tokenText(tokenizer_.get(), index, token.id);
        piece.logprob.logprob = token.logprob;
        piece.logprob.offset = offsets_[choice];
        for (const auto& [id, logprob] : token.top) {
            piece.logprob.best.emplace_back(tokenText(tokenizer_.get(), index, id), logprob);
        }
    }
    return piece;
}

void Exchange::addToken(std::size_t choice, const engine::GeneratedToken& token) {
    if (head_.onlyPrompt) {
        return;
    }
    const ReplyPiece piece = pieceOf(choice, token);
    offsets_[choice] += static_cast<std::int64_t>(piece.text.size());
    if (stream_) {
        send(tokenChunk(head_, choice, piece));
        return;
    }
    ReplyChoice& into = choices_[choice];
    (piece.channel == "analysis" ? into.reasoning : into.text) += piece.text;
    if (head_.logprobs) {
        into.logprobs.push_back(piece.logprob);
    }
    if (head_.tokenIds) {
        into.ids.push_back(piece.id);
    }
}

void Exchange::token(std::size_t choice, const engine::GeneratedToken& token) {
    std::vector<std::shared_ptr<const engine::RequestListener>> lost;
    {
        const std::lock_guard lock(mutex_);
        if (over_) {
            return;
        }
        try {
            addToken(choice, token);
        } catch (const std::bad_alloc&) {
            gone_ = true;
        }
        if (unsent_.size() - sent_ > mostUnsent_) {
            gone_ = true; // it reads too slowly
        }
        if (gone_) {
            lost = openChoices();
            over_ = true;
            unsent_ = {};
            sent_ = 0;
            wake();
        }
    }
    inbox_.leave(lost);
}

/// Their tokens stand before those of the answer.
void Exchange::addPromptLogprobs(std::size_t choice, const engine::GenerateResult& result) {
    if (!echoes_.empty() && head_.logprobs) {
        std::vector<TokenLogprob> all = promptLogprobs(*echoes_[choice], tokenizer_.get(), result.promptScores);
        std::vector<TokenLogprob>& answer = choices_[choice].logprobs;
        all.insert(all.end(), std::make_move_iterator(answer.begin()), std::make_move_iterator(answer.end()));
        answer = std::move(all);
    }
}

void Exchange::ended(std::size_t choice, const engine::BatchResult& result) {
    std::vector<std::shared_ptr<const engine::RequestListener>> others;
    {
        const std::lock_guard lock(mutex_);
        listeners_[choice].reset();
        --open_;
        usage_.completion += head_.onlyPrompt ? 0 : static_cast<std::int64_t>(result.result.ids.size());
        usage_.cached += result.sharedTokens;
        if (over_) {
            return;
        }
        if (const std::optional<ApiError> error = errorOf(result)) {
            others = openChoices();
            fail(*error);
        } else {
            const engine::FinishReason finish = head_.onlyPrompt ? engine::FinishReason::Length : result.result.finish;
            choices_[choice].finish = finish;
            addPromptLogprobs(choice, result.result);
            if (stream_) {
                send(lastChunk(head_, choice, finish));
            }
            if (open_ == 0) {
                over_ = true;
                if (stream_) {
                    send(streamEnd(head_, usage_));
                }
                wake();
            }
        }
    }
    inbox_.leave(others);
}

void Exchange::send(const std::string& bytes) {
    if (bytes.empty()) {
        return;
    }
    if (sent_ > 0) {
        unsent_.erase(0, std::exchange(sent_, 0));
    }
    unsent_ += bytes;
    wake();
}

/// When one choice fails, the whole answer fails.
void Exchange::fail(const ApiError& error) {
    error_ = error;
    over_ = true;
    if (stream_) {
        send(errorChunk(error));
    }
    wake();
}

std::vector<std::shared_ptr<const engine::RequestListener>> Exchange::openChoices() const {
    std::vector<std::shared_ptr<const engine::RequestListener>> open;
    for (const std::weak_ptr<Choice>& choice : listeners_) {
        if (auto listener = choice.lock()) {
            open.push_back(std::move(listener));
        }
    }
    return open;
}

void Exchange::wake() {
    if (sleeper_ != nullptr) {
        std::exchange(sleeper_, nullptr)->wake();
    }
}

} // namespace vitrine::app
