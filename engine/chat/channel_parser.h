// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Splits what a model writes into messages and channels while it is being generated: harmony's analysis, commentary and
// final. The text of all other models belongs to one channel, "final".

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/chat/answer_form.h"
#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {

/// Text that has just become certain. Texts of one message come in order; a new message begins with `startsMessage`.
struct ChannelText {
    std::string channel;   ///< "analysis", "commentary", "final" or what the model wrote
    std::string recipient; ///< "functions.NAME" for a tool call, else empty
    std::string text;      ///< whole code points; may be empty at the start of a message
    bool startsMessage = false;
};

/// A whole message of the answer.
struct ChannelMessage {
    std::string channel;
    std::string recipient;
    std::string contentType; ///< "json" for a tool call's arguments, else mostly empty
    std::string text;
    bool complete = false; ///< its end token was seen
};

/// Fed with the generated ids that follow the generation prompt, one at a time. One thread at a time.
class ChannelParser {
public:
    ChannelParser(AnswerForm form, std::shared_ptr<const Tokenizer> tokenizer);

    std::vector<ChannelText> push(std::int32_t id);
    /// Returns the text that was held back. Nothing may be pushed afterwards.
    std::vector<ChannelText> finish();

    const std::vector<ChannelMessage>& messages() const { return messages_; }

private:
    enum class State { Header, Channel, ContentType, Body, Between };

    std::vector<ChannelText> pushHarmony(std::int32_t id);
    bool control(std::int32_t id, std::vector<ChannelText>& out);
    void headerText(std::int32_t id, std::vector<ChannelText>& out);
    void beginBody(std::vector<ChannelText>& out);
    void bodyText(std::string text, std::vector<ChannelText>& out);
    void endBody(bool complete, std::vector<ChannelText>& out);

    std::shared_ptr<const Tokenizer> tokenizer_;
    StreamDecoder decoder_;
    bool harmony_;
    State state_ = State::Header;
    std::string role_;        ///< header text before the channel; the prompt wrote "assistant" already
    std::string channel_;     ///< header text after <|channel|>
    std::string contentType_; ///< header text after <|constrain|>
    bool firstMessage_ = true;
    std::vector<ChannelMessage> messages_;
    std::int32_t start_ = -1, channelId_ = -1, constrain_ = -1, message_ = -1, end_ = -1, return_ = -1, call_ = -1;
};

} // namespace vitrine::engine
