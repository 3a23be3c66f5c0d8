// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Conversations as training data: the whole conversation in the model's chat format, and which of its tokens the
// assistant says.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/chat/chat_format.h"
#include "engine/chat/chat_message.h"
#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {

struct MaskedChat {
    std::vector<std::int32_t> tokens;
    /// For each token 1 where it belongs to an answer of the assistant or ends its turn. Where the format's header and
    /// the answer share a token, it counts as part of the answer.
    std::vector<std::uint8_t> trained;
    /// For each trained token the index of its message; -1 where it is not trained or the message is not known. Answers
    /// that a format joins to one turn have the index of the first.
    std::vector<std::int32_t> message;
};

/// Renders without a generation prompt, whatever `options` says. Texts of messages never become special tokens, so the
/// special tokens of the format show where turns begin and end. What they show is compared with the prompts that the
/// format makes of the beginnings of the conversation. Throws BadInput "messages: what" where the turns cannot be told
/// apart for certain, and what ChatFormat::render throws.
MaskedChat maskedChat(const ChatFormat& format, const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                      const ChatOptions& options);

/// A turn of a conversation that was rendered: its tokens reach to the next turn or to the end.
struct ChatTurn {
    std::string role; ///< as the format writes it
    std::int64_t begin = 0, end = 0;
};
/// The turns that the special tokens of a format show; empty where its turns begin with letters.
std::vector<ChatTurn> chatTurns(ChatFormatKind format, const Tokenizer& tokenizer,
                                std::span<const std::int32_t> tokens);
/// Tokens that end an answer in a conversation of this format.
std::vector<std::int32_t> answerEnds(ChatFormatKind format, const Tokenizer& tokenizer);

} // namespace vitrine::engine
