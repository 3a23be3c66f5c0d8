// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/chat_mask.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "engine/tokenizer/token_offsets.h"

namespace vitrine::engine {

namespace {

/// Prompts of beginnings are rendered for conversations up to here: the work grows with the square of their number.
constexpr std::size_t kMostRenderedMessages = 64;

/// Bytes [begin, end) of a prompt that the assistant says.
struct Answer {
    std::size_t begin = 0, end = 0;
    std::size_t message = 0;
};

/// Finds answers in the prompt of a template that does not mark them.
class AnswerFinder {
public:
    AnswerFinder(const ChatFormat& format, std::span<const ChatMessage> messages, const ChatOptions& options,
                 const RenderedChat& chat, std::span<const std::size_t> offsets, std::vector<std::int32_t> ends)
        : format_(format), messages_(messages), options_(options), chat_(chat), offsets_(offsets),
          ends_(std::move(ends)), letters_(messages.size()) {
        options_.addGenerationPrompt = true;
        for (std::size_t at = 0; at < chat.origins.size(); ++at) {
            const std::int64_t message = messageOf(chat.origins[at]);
            if (message < 0 || std::cmp_greater_equal(message, messages.size())) {
                continue;
            }
            Letters& letters = letters_[static_cast<std::size_t>(message)];
            if (!letters.any) {
                letters = {true, false, at, at + 1};
            } else if (!letters.over) {
                letters.over = at != letters.end && isOver(letters.end, at);
                letters.end = letters.over ? letters.end : at + 1;
            }
        }
    }

    std::vector<Answer> findAll() {
        std::vector<Answer> answers;
        std::size_t done = 0; // all before it belongs to earlier messages
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            const bool follows =
                i > 0 && messages_[i - 1].isAnswer() && !answers.empty() && answers.back().message == i - 1;
            if (messages_[i].isAnswer()) {
                // In harmony the model goes on after the end of a message: thought, call and answer are one turn.
                const bool joins = follows && format_.answerForm() == AnswerForm::Harmony;
                const std::optional<std::size_t> begin = joins ? done : beginOf(i, done);
                if (begin) {
                    answers.push_back({*begin, endOf(i, *begin), i});
                    done = answers.back().end;
                }
            }
            done = letters_[i].any ? std::max(done, letters_[i].end) : done;
        }
        return answers;
    }

private:
    /// From the first to the last letter of a message.
    struct Letters {
        bool any = false;
        bool over = false; ///< its turn has ended: letters that follow are repetitions
        std::size_t begin = 0, end = 0;
    };

    /// Whether a turn ends in these bytes and no answer begins behind its end. A template can print letters of an
    /// answer again later, such as the name of a function that was called.
    bool isOver(std::size_t begin, std::size_t end) {
        std::size_t last = end;
        for (std::size_t token = tokenAt(begin); token < chat_.ids.size() && offsets_[token] < end; ++token) {
            if (std::find(ends_.begin(), ends_.end(), chat_.ids[token]) != ends_.end()) {
                last = offsets_[token + 1];
            }
        }
        const std::string& header = answerHeader();
        return last < end &&
               (header.empty() || !std::string_view(chat_.text).substr(last, end - last).starts_with(header));
    }

    std::size_t tokenAt(std::size_t byte) const {
        return static_cast<std::size_t>(std::lower_bound(offsets_.begin(), offsets_.end(), byte) - offsets_.begin());
    }

    std::optional<std::size_t> beginOf(std::size_t i, std::size_t done) {
        const Letters& letters = letters_[i];
        if (!letters.any && messages_[i].text().find_first_not_of(" \t\r\n") != std::string::npos) {
            throw base::BadInput(fmt::format("messages[{}]: the chat template does not print this answer; take it out, "
                                             "or give the row as tokens",
                                             i));
        }
        const std::size_t latest = letters.any ? letters.begin : chat_.text.size();
        if (messages_.size() <= kMostRenderedMessages) {
            const std::optional<std::string> prompt = promptOf(i, true);
            if (prompt && prompt->size() >= done && prompt->size() <= latest && chat_.text.starts_with(*prompt)) {
                return prompt->size();
            }
        }
        if (!letters.any) {
            return std::nullopt;
        }
        const std::string& header = answerHeader();
        const std::size_t at = std::string_view(chat_.text).substr(0, latest).find(header, done);
        return header.empty() || at == std::string_view::npos ? letters.begin : at + header.size();
    }

    std::size_t endOf(std::size_t i, std::size_t begin) const {
        const std::size_t from = letters_[i].any ? std::max(begin, letters_[i].end) : begin;
        std::size_t limit = chat_.text.size();
        for (std::size_t k = i + 1; k < letters_.size() && limit == chat_.text.size(); ++k) {
            limit = letters_[k].any ? letters_[k].begin : limit;
        }
        for (std::size_t token = tokenAt(from); token < chat_.ids.size() && offsets_[token] < limit; ++token) {
            if (std::find(ends_.begin(), ends_.end(), chat_.ids[token]) != ends_.end()) {
                return offsets_[token + 1];
            }
        }
        return from;
    }

    /// Nothing where the template refuses so short a conversation.
    std::optional<std::string> promptOf(std::size_t count, bool generation) const {
        ChatOptions options = options_;
        options.addGenerationPrompt = generation;
        try {
            return format_.prompt(messages_.first(count), options).bytes();
        } catch (const base::BadInput&) {
            return std::nullopt;
        }
    }

    /// What the template prints where an answer is asked for; empty: nothing, or it cannot be told.
    const std::string& answerHeader() {
        if (header_) {
            return *header_;
        }
        const auto answer = std::find_if(messages_.begin(), messages_.end(),
                                         [](const ChatMessage& message) { return message.isAnswer(); });
        const auto count = static_cast<std::size_t>(answer - messages_.begin());
        const std::optional<std::string> with = promptOf(count, true), without = promptOf(count, false);
        const bool known = with && without && with->starts_with(*without);
        header_ = known ? with->substr(without->size()) : std::string();
        return *header_;
    }

    const ChatFormat& format_;
    std::span<const ChatMessage> messages_;
    ChatOptions options_;
    const RenderedChat& chat_;
    std::span<const std::size_t> offsets_;
    std::vector<std::int32_t> ends_;
    std::vector<Letters> letters_;
    std::optional<std::string> header_;
};

/// Of a template that marks answers: each stretch of marked letters.
std::vector<Answer> markedAnswers(const RenderedChat& chat, std::span<const ChatMessage> messages) {
    std::vector<Answer> answers;
    std::size_t next = 0; // the first message that an answer without letters can be
    for (std::size_t at = 0; at < chat.origins.size();) {
        if ((chat.origins[at] & jinja::kGenerated) == 0) {
            ++at;
            continue;
        }
        Answer answer{at, at, messages.size()};
        for (; at < chat.origins.size() && (chat.origins[at] & jinja::kGenerated) != 0; ++at) {
            const std::int64_t message = messageOf(chat.origins[at]);
            answer.message = message >= 0 ? static_cast<std::size_t>(message) : answer.message;
        }
        answer.end = at;
        while (answer.message == messages.size() && next < messages.size() && !messages[next].isAnswer()) {
            ++next;
        }
        answer.message = std::min(answer.message, std::min(next, messages.size() - 1));
        next = answer.message + 1;
        answers.push_back(answer);
    }
    return answers;
}

} // namespace

MaskedChat maskedChat(const ChatFormat& format, std::span<const ChatMessage> messages, const ChatOptions& options,
                      std::span<const std::int32_t> ends) {
    ChatOptions whole = options;
    whole.addGenerationPrompt = false;
    RenderedChat chat = format.render(messages, whole);
    const std::vector<std::size_t> offsets = tokenOffsets(format.tokenizer(), chat.text, chat.ids);
    std::vector<Answer> answers;
    if (format.templateFor(options).marksAnswers()) {
        answers = markedAnswers(chat, messages);
    } else {
        std::vector<std::int32_t> all = format.answerEnds();
        all.insert(all.end(), ends.begin(), ends.end());
        answers = AnswerFinder(format, messages, options, chat, offsets, std::move(all)).findAll();
    }
    MaskedChat out;
    out.tokens = std::move(chat.ids);
    out.trained.assign(out.tokens.size(), 0);
    out.message.assign(out.tokens.size(), -1);
    std::size_t token = 0;
    for (const Answer& answer : answers) {
        while (token < out.tokens.size() && std::max(offsets[token + 1], offsets[token] + 1) <= answer.begin) {
            ++token;
        }
        for (; token < out.tokens.size() && offsets[token] < answer.end; ++token) {
            out.trained[token] = 1;
            out.message[token] = static_cast<std::int32_t>(answer.message);
        }
    }
    return out;
}

std::vector<ChatTurn> chatTurns(const ChatFormat& format, std::span<const std::int32_t> tokens) {
    const Tokenizer& tokenizer = format.tokenizer();
    const auto idOf = [&](std::string_view piece) {
        const bool printed = format.templateFor({}).text().find(piece) != std::string::npos;
        return printed ? tokenizer.idOf(piece) : std::nullopt;
    };
    // Mistral has a token before a question and one before an answer; the others have one token and a name after it.
    std::optional<std::int32_t> open, answer;
    for (const char* const piece : {"<|start|>", "<|im_start|>", "<|start_header_id|>", "<start_of_turn>",
                                    "<|start_of_role|>", "<|header_start|>", "<|turn>"}) {
        open = open ? open : idOf(piece);
    }
    const bool named = open.has_value();
    open = named ? open : idOf("[INST]");
    answer = named ? open : idOf("[/INST]");
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
