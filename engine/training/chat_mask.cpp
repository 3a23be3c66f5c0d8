// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/chat_mask.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {

namespace {

/// Beginnings are rendered for conversations up to here: the work grows with the square of the number of messages.
constexpr std::size_t kMostCheckedMessages = 64;

using Ids = std::vector<std::int32_t>;

/// How an answer looks in a format: a token that opens a turn, the text of the header, and tokens that end the turn.
struct TurnForm {
    std::string_view open;
    std::string_view header;
    std::vector<std::string_view> ends;
    bool joins = false; ///< answers that follow each other directly are one turn: thought, call and answer
};

TurnForm formOf(ChatFormatKind kind) {
    switch (kind) {
    case ChatFormatKind::Harmony:
        return {"<|start|>", "assistant", {"<|end|>", "<|call|>", "<|return|>"}, true};
    case ChatFormatKind::ChatMl:
        return {"<|im_start|>", "assistant\n", {"<|im_end|>"}};
    case ChatFormatKind::Llama3:
        return {"<|start_header_id|>", "assistant<|end_header_id|>\n\n", {"<|eot_id|>"}};
    case ChatFormatKind::Mistral:
        return {"[/INST]", "", {"</s>"}};
    case ChatFormatKind::Gemma:
        return {"<start_of_turn>", "model\n", {"<end_of_turn>"}};
    }
    throw base::Internal("a chat format without turns");
}

/// Tokens [begin, end) of an answer with the token that ends its turn.
struct Answer {
    std::size_t begin = 0;
    std::size_t end = 0;
};

class AnswerFinder {
public:
    AnswerFinder(const ChatFormat& format, const Tokenizer& tokenizer, const Ids& ids)
        : form_(formOf(format.kind())), tokenizer_(tokenizer), ids_(ids) {
        ends_ = answerEnds(format.kind(), tokenizer);
        if (const auto id = tokenizer.idOf(form_.open)) {
            open_ = *id;
        }
    }

    /// Whether turns begin with a token. Old tokenizers of Mistral have letters for it.
    bool hasOpener() const { return open_ >= 0; }

    std::vector<Answer> findAll() const {
        std::vector<Answer> answers;
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            if (ids_[i] != open_) {
                continue;
            }
            const std::size_t begin = afterHeader(i + 1);
            if (begin == 0) {
                continue;
            }
            const std::size_t end = endAfter(begin);
            if (end == 0) {
                break; // a question without an answer
            }
            if (form_.joins && !answers.empty() && answers.back().end == i) {
                answers.back().end = end;
            } else {
                answers.push_back({begin, end});
            }
            i = end - 1;
        }
        return answers;
    }

    /// Behind the first token at `begin` or later that ends a turn; 0: there is none.
    std::size_t endAfter(std::size_t begin) const {
        for (std::size_t i = begin; i < ids_.size(); ++i) {
            if (std::find(ends_.begin(), ends_.end(), ids_[i]) != ends_.end()) {
                return i + 1;
            }
        }
        return 0;
    }

private:
    /// Where the answer begins if the header of an answer stands at `at`, else 0.
    std::size_t afterHeader(std::size_t at) const {
        if (form_.header.empty()) {
            return at;
        }
        for (std::size_t count = 1; count <= form_.header.size() && at + count <= ids_.size(); ++count) {
            const std::string text = tokenizer_.decode(std::span(ids_).subspan(at, count));
            if (text.size() >= form_.header.size()) {
                const bool shared = text.size() > form_.header.size();
                return text.starts_with(form_.header) ? at + count - (shared ? 1 : 0) : 0;
            }
        }
        return 0;
    }

    TurnForm form_;
    const Tokenizer& tokenizer_;
    const Ids& ids_;
    Ids ends_;
    std::int32_t open_ = -1;
};

bool isPrefix(const Ids& prefix, const Ids& ids) {
    return prefix.size() <= ids.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
}

bool isAnswer(const ChatMessage& message) {
    return message.role == "assistant";
}

/// An answer that does not follow another one begins where a prompt made of all before it ends.
bool beginsTurn(std::span<const ChatMessage> messages, std::size_t i) {
    return isAnswer(messages[i]) && (i == 0 || !isAnswer(messages[i - 1]));
}

Ids promptBefore(const ChatFormat& format, std::span<const ChatMessage> messages, std::size_t count,
                 ChatOptions options) {
    options.addGenerationPrompt = true;
    options.enableThinking = true; // else an empty thought would belong to the prompt
    return format.render(messages.first(count), options).ids;
}

/// Compares answers that the tokens show with prompts. A prompt whose last token the answer changes shows nothing.
void checkAnswers(const ChatFormat& format, std::span<const ChatMessage> messages, const ChatOptions& options,
                  const Ids& ids, const std::vector<Answer>& answers) {
    const std::ptrdiff_t asked = std::count_if(messages.begin(), messages.end(), isAnswer);
    const bool joins = formOf(format.kind()).joins;
    bool good = joins ? answers.empty() == (asked == 0) : std::cmp_equal(answers.size(), asked);
    for (std::size_t i = 0; good && messages.size() <= kMostCheckedMessages && i < messages.size(); ++i) {
        if (!beginsTurn(messages, i)) {
            continue;
        }
        const Ids prompt = promptBefore(format, messages, i, options);
        good = !isPrefix(prompt, ids) || std::any_of(answers.begin(), answers.end(), [&](const Answer& answer) {
            return answer.begin == prompt.size();
        });
    }
    if (!good) {
        throw base::BadInput("messages: the answers of the assistant cannot be told apart in this chat format; give "
                             "the row as tokens");
    }
}

/// For formats whose turns begin with letters: each answer begins where the prompt before it ends.
std::vector<Answer> answersByPrompts(const ChatFormat& format, std::span<const ChatMessage> messages,
                                     const ChatOptions& options, const Ids& ids, const AnswerFinder& finder) {
    if (messages.size() > kMostCheckedMessages) {
        throw base::BadInput(fmt::format("messages: {} are more than the {} that this chat format takes; split the "
                                         "conversation",
                                         messages.size(), kMostCheckedMessages));
    }
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (!isAnswer(messages[i])) {
            continue;
        }
        const Ids prompt = promptBefore(format, messages, i, options);
        const std::size_t end = isPrefix(prompt, ids) ? finder.endAfter(prompt.size()) : 0;
        if (end == 0) {
            throw base::BadInput(fmt::format("messages[{}]: the tokens before this answer depend on what follows, so "
                                             "the answer has no certain beginning; give the row as tokens",
                                             i));
        }
        answers.push_back({prompt.size(), end});
    }
    return answers;
}

/// For each answer the index of its message, or of the first one that it joins; all -1 where the counts differ.
std::vector<std::int32_t> messagesOf(std::size_t answers, std::span<const ChatMessage> messages, bool joins) {
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (joins ? beginsTurn(messages, i) : isAnswer(messages[i])) {
            out.push_back(static_cast<std::int32_t>(i));
        }
    }
    return out.size() == answers ? out : std::vector<std::int32_t>(answers, -1);
}

} // namespace

MaskedChat maskedChat(const ChatFormat& format, const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                      const ChatOptions& options) {
    ChatOptions whole = options;
    whole.addGenerationPrompt = false;
    MaskedChat out;
    out.tokens = format.render(messages, whole).ids;
    out.trained.assign(out.tokens.size(), 0);
    const AnswerFinder finder(format, tokenizer, out.tokens);
    std::vector<Answer> answers;
    if (finder.hasOpener()) {
        answers = finder.findAll();
        checkAnswers(format, messages, options, out.tokens, answers);
    } else {
        answers = answersByPrompts(format, messages, options, out.tokens, finder);
    }
    const std::vector<std::int32_t> spoken = messagesOf(answers.size(), messages, formOf(format.kind()).joins);
    out.message.assign(out.tokens.size(), -1);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const auto begin = static_cast<std::ptrdiff_t>(answers[i].begin),
                   end = static_cast<std::ptrdiff_t>(answers[i].end);
        std::fill(out.trained.begin() + begin, out.trained.begin() + end, std::uint8_t{1});
        std::fill(out.message.begin() + begin, out.message.begin() + end, spoken[i]);
    }
    return out;
}

std::vector<std::int32_t> answerEnds(ChatFormatKind format, const Tokenizer& tokenizer) {
    std::vector<std::int32_t> ends;
    for (const std::string_view piece : formOf(format).ends) {
        if (const auto id = tokenizer.idOf(piece)) {
            ends.push_back(*id);
        }
    }
    return ends;
}

std::vector<ChatTurn> chatTurns(ChatFormatKind format, const Tokenizer& tokenizer,
                                std::span<const std::int32_t> tokens) {
    // Mistral has a token before a question and one before an answer; the others have one token and a name after it.
    const bool named = format != ChatFormatKind::Mistral;
    const auto open = tokenizer.idOf(named ? formOf(format).open : "[INST]");
    const auto answer = tokenizer.idOf(named ? formOf(format).open : "[/INST]");
    constexpr std::size_t kMostNameTokens = 8;
    std::vector<ChatTurn> turns;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] != open && tokens[i] != answer) {
            continue;
        }
        ChatTurn turn{named ? "" : tokens[i] == answer ? "assistant" : "user", static_cast<std::int64_t>(i), 0};
        for (std::size_t at = i + 1; named && at < std::min(tokens.size(), i + 1 + kMostNameTokens); ++at) {
            const std::string text = tokenizer.decode(tokens.subspan(at, 1));
            if (tokenizer.isSpecial(tokens[at]) || text.find('\n') != std::string::npos) {
                break;
            }
            turn.role += text;
        }
        turn.role = turn.role == "model" ? "assistant" : turn.role;
        if (!turns.empty()) {
            turns.back().end = turn.begin;
        }
        turns.push_back(std::move(turn));
    }
    if (!turns.empty()) {
        turns.back().end = static_cast<std::int64_t>(tokens.size());
    }
    return turns;
}

} // namespace vitrine::engine
