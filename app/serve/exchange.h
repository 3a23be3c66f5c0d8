// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One request of a client and the answer to it: the run's thread puts tokens in, an HTTP thread takes bytes out. The
// HTTP side sleeps while there is nothing to send and is woken by the next token. The bytes that a client has not read
// yet are bounded: a client that reads too slowly loses its answer.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/serve/api_reply.h"
#include "app/serve/inbox.h"
#include "app/serve/prompt_echo.h"

namespace vitrine::app {

/// The HTTP side of an exchange: sleep() puts it to sleep, wake() may be called from any thread.
class Sleeper {
public:
    virtual ~Sleeper() = default;
    virtual void sleep() = 0;
    virtual void wake() = 0;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
public:
    /// The most bytes of a stream that may wait to be sent. Bytes in the system's buffers do not count.
    static constexpr std::size_t kMostUnsent = std::size_t{256} << 10;

    /// `tokenizer` may be null: an answer's text is then its ids as numbers. `inbox` must outlive the exchange.
    Exchange(ReplyHead head, bool stream, std::size_t choices, std::shared_ptr<const engine::Tokenizer> tokenizer,
             Inbox& inbox);

    bool stream() const { return stream_; }
    /// One listener for each choice. Each keeps the exchange alive. Call it before the requests are submitted.
    std::vector<std::shared_ptr<engine::RequestListener>> listeners();
    void setPromptTokens(std::int64_t tokens) { usage_.prompt = tokens; }
    /// The prompts that the choices begin with, one for each choice or none. Call it before the requests are submitted.
    void setEchoes(std::vector<std::shared_ptr<const PromptEcho>> echoes);

    struct Reply {
        int status = 200;
        std::string body;
        std::optional<ApiError> error; ///< why there is no answer; the other fields say it too
    };
    /// The whole answer when it is complete. Until then it returns nothing and has put `sleeper` to sleep.
    std::optional<Reply> reply(Sleeper& sleeper);
    /// Bytes of the stream: a number of them, 0 (`sleeper` was put to sleep), kEnd or kBroken.
    static constexpr std::int64_t kEnd = -1, kBroken = -2;
    std::int64_t read(char* out, std::size_t most, Sleeper& sleeper);
    /// The client is gone: its requests are cancelled and unsent bytes are dropped.
    void abandon();
    bool abandoned() const;
    /// The sleeper will be destroyed and must not be woken any more.
    void detach();

private:
    class Choice;

    void token(std::size_t choice, const engine::GeneratedToken& token);
    void ended(std::size_t choice, const engine::BatchResult& result);
    void send(const std::string& bytes);
    void fail(const ApiError& error);
    std::vector<std::shared_ptr<const engine::RequestListener>> openChoices() const;
    void wake();
    void addToken(std::size_t choice, const engine::GeneratedToken& token);
    ReplyPiece pieceOf(std::size_t choice, const engine::GeneratedToken& token) const;
    void addPromptLogprobs(std::size_t choice, const engine::GenerateResult& result);

    const ReplyHead head_;
    const bool stream_;
    const std::shared_ptr<const engine::Tokenizer> tokenizer_;
    Inbox& inbox_;

    mutable std::mutex mutex_; ///< guards what follows
    std::vector<std::weak_ptr<Choice>> listeners_;
    std::vector<ReplyChoice> choices_;
    std::vector<std::int64_t> offsets_; ///< bytes of each choice's text
    std::vector<std::shared_ptr<const PromptEcho>> echoes_;
    std::size_t mostUnsent_ = kMostUnsent; ///< and the prompts that a stream begins with
    std::size_t open_;                     ///< choices that have not ended
    Usage usage_;
    std::string unsent_;
    std::size_t sent_ = 0; ///< of unsent_
    std::optional<ApiError> error_;
    bool over_ = false; ///< nothing more comes
    bool gone_ = false;
    Sleeper* sleeper_ = nullptr; ///< asleep
};

} // namespace vitrine::app
