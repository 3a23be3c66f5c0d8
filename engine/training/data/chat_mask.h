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

namespace vitrine::engine {

struct MaskedChat {
    std::vector<std::int32_t> tokens;
    /// For each token 1 where it belongs to an answer of the assistant or ends its turn. Where the format's header and
    /// the answer share a token, it counts as part of the answer.
    std::vector<std::uint8_t> trained;
    /// For each trained token the index of its message; -1 where it is not trained.
    std::vector<std::int32_t> message;
};

/// Renders without a generation prompt, whatever `options` says. The answers are what the template marks with blocks
/// {% generation %}. A template without such blocks shows them otherwise: an answer begins where a prompt of all
/// messages before it ends, and ends with the token that ends its turn; `ends` are such tokens beside those of the
/// format. Where prompts of a beginning are no beginning of the whole, an answer is the text that its message has.
/// Throws BadInput "messages[I]: what" for an answer that the template does not print, and what ChatFormat::render
/// throws.
MaskedChat maskedChat(const ChatFormat& format, std::span<const ChatMessage> messages, const ChatOptions& options,
                      std::span<const std::int32_t> ends = {});

/// A turn of a conversation that was rendered: its tokens reach to the next turn or to the end.
struct ChatTurn {
    std::string role; ///< as the format writes it
    std::int64_t begin = 0, end = 0;
};
/// The turns that the special tokens of a format show; empty where its turns begin with letters.
std::vector<ChatTurn> chatTurns(const ChatFormat& format, std::span<const std::int32_t> tokens);

} // namespace vitrine::engine
