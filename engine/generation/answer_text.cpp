// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/answer_text.h"

#include <utility>

namespace vitrine::engine {

AnswerText::AnswerText(AnswerForm form, std::shared_ptr<const Tokenizer> tokenizer,
                       const std::vector<std::string>& stops)
    : parser_(form, std::move(tokenizer)), stop_(stops) {}

void AnswerText::show(AnswerPiece& piece, const std::string& text) {
    if (!text.empty()) {
        channels_[channel_] += text;
        piece.text += text;
    }
}

AnswerPiece AnswerText::take(const std::vector<ChannelText>& chunks) {
    AnswerPiece piece;
    for (const ChannelText& chunk : chunks) {
        if (stop_.hit()) {
            break;
        }
        if (chunk.startsMessage) {
            // A stop string does not reach from one message into the next.
            show(piece, stop_.finish());
            channel_ = chunk.channel;
        }
        show(piece, stop_.push(chunk.text));
    }
    piece.channel = channel_;
    return piece;
}

AnswerPiece AnswerText::push(std::int32_t id) {
    return take(parser_.push(id));
}

AnswerPiece AnswerText::finish() {
    AnswerPiece piece = take(parser_.finish());
    if (!stop_.hit()) {
        show(piece, stop_.finish());
    }
    return piece;
}

} // namespace vitrine::engine
