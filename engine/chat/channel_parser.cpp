// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/channel_parser.h"

#include <utility>

namespace vitrine::engine {

namespace {

constexpr std::string_view kFinal = "final";
// Real headers are short. A model that writes text where a header belongs gets it shown as text.
constexpr std::size_t kLongestHeader = 160;

/// Cuts " to=NAME" out of a header text and returns NAME.
std::string takeRecipient(std::string& header) {
    constexpr std::string_view kTo = "to=";
    const std::size_t at = header.find(kTo);
    if (at == std::string::npos || (at > 0 && header[at - 1] != ' ')) {
        return {};
    }
    const std::size_t end = std::min(header.find(' ', at), header.size());
    std::string name = header.substr(at + kTo.size(), end - at - kTo.size());
    header.erase(at, end - at);
    return name;
}

/// The first word, cut off the text.
std::string takeWord(std::string& text) {
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    text.erase(0, end);
    return word;
}

} // namespace

ChannelParser::ChannelParser(AnswerForm form, std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)), decoder_(tokenizer_, true), harmony_(form == AnswerForm::Harmony) {
    const auto id = [&](std::string_view piece) { return tokenizer_->idOf(piece).value_or(-1); };
    start_ = id("<|start|>");
    channelId_ = id("<|channel|>");
    constrain_ = id("<|constrain|>");
    message_ = id("<|message|>");
    end_ = id("<|end|>");
    return_ = id("<|return|>");
    call_ = id("<|call|>");
}

std::vector<ChannelText> ChannelParser::push(std::int32_t id) {
    if (harmony_) {
        return pushHarmony(id);
    }
    std::vector<ChannelText> out;
    bodyText(decoder_.push(id), out);
    return out;
}

std::vector<ChannelText> ChannelParser::pushHarmony(std::int32_t id) {
    std::vector<ChannelText> out;
    if (control(id, out)) {
        return out;
    }
    if (state_ == State::Body) {
        bodyText(decoder_.push(id), out);
    } else if (state_ == State::Between) {
        // Text where only <|start|> belongs: shown, so that nothing of the answer is lost.
        role_.clear();
        channel_.clear();
        beginBody(out);
        bodyText(decoder_.push(id), out);
    } else {
        headerText(id, out);
    }
    return out;
}

/// Handles the tokens that structure a message. Returns false for text.
bool ChannelParser::control(std::int32_t id, std::vector<ChannelText>& out) {
    if (id < 0) {
        return false;
    }
    if (id == start_) {
        endBody(false, out);
        state_ = State::Header;
        firstMessage_ = false;
    } else if (id == channelId_ && state_ != State::Body) {
        role_ += decoder_.finish();
        state_ = State::Channel;
    } else if (id == constrain_ && state_ != State::Body) {
        (state_ == State::Channel ? channel_ : role_) += decoder_.finish();
        state_ = State::ContentType;
    } else if (id == message_ && state_ != State::Body) {
        std::string& text = state_ == State::Channel ? channel_ : state_ == State::ContentType ? contentType_ : role_;
        text += decoder_.finish();
        beginBody(out);
    } else if (id == end_ || id == return_ || id == call_) {
        if (state_ == State::Header || state_ == State::Channel || state_ == State::ContentType) {
            decoder_.finish();
        }
        endBody(true, out);
        state_ = State::Between;
    } else {
        return false;
    }
    return true;
}

void ChannelParser::headerText(std::int32_t id, std::vector<ChannelText>& out) {
    const std::string text = decoder_.push(id);
    std::string& header = state_ == State::Header ? role_ : state_ == State::Channel ? channel_ : contentType_;
    header += text;
    // After the generation prompt the header goes on with a channel or with " to=": anything else is an answer.
    const std::string_view kRecipient = " to=";
    const std::size_t compared = std::min(role_.size(), kRecipient.size());
    const bool answer =
        state_ == State::Header && firstMessage_ && role_.compare(0, compared, kRecipient, 0, compared) != 0;
    if (answer || header.size() > kLongestHeader || header.find('\n') != std::string::npos) {
        const std::string written = std::exchange(header, {});
        role_.clear();
        channel_.clear();
        contentType_.clear();
        beginBody(out);
        bodyText(written, out);
    }
}

void ChannelParser::beginBody(std::vector<ChannelText>& out) {
    ChannelMessage message;
    message.recipient = takeRecipient(channel_);
    if (message.recipient.empty()) {
        message.recipient = takeRecipient(role_);
    }
    message.channel = takeWord(channel_);
    if (message.channel.empty()) {
        message.channel = kFinal;
    }
    message.contentType = takeWord(contentType_);
    if (message.contentType.empty()) {
        message.contentType = takeWord(channel_); // "commentary json"
    }
    out.push_back({message.channel, message.recipient, "", true});
    messages_.push_back(std::move(message));
    role_.clear();
    channel_.clear();
    contentType_.clear();
    state_ = State::Body;
}

void ChannelParser::bodyText(std::string text, std::vector<ChannelText>& out) {
    if (text.empty()) {
        return;
    }
    if (!harmony_ && messages_.empty()) {
        messages_.push_back({std::string(kFinal), "", "", "", false});
        out.push_back({std::string(kFinal), "", "", true});
    }
    ChannelMessage& message = messages_.back();
    message.text += text;
    if (!out.empty()) {
        out.back().text += text;
    } else {
        out.push_back({message.channel, message.recipient, std::move(text), false});
    }
}

void ChannelParser::endBody(bool complete, std::vector<ChannelText>& out) {
    if (state_ == State::Body) {
        bodyText(decoder_.finish(), out);
        messages_.back().complete = complete;
    }
    role_.clear();
    channel_.clear();
    contentType_.clear();
}

std::vector<ChannelText> ChannelParser::finish() {
    std::vector<ChannelText> out;
    if (!harmony_) {
        bodyText(decoder_.finish(), out);
    } else {
        endBody(false, out);
    }
    state_ = State::Between;
    return out;
}

} // namespace vitrine::engine
