// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The text of one request while its tokens come. Tokens are decoded, the text is divided into channels, and a stop
// string ends it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/chat/channel_parser.h"
#include "engine/generation/stop_text.h"

namespace vitrine::engine {

/// The text that can be shown because one more token is known.
struct AnswerPiece {
    std::string text;
    std::string channel = "final"; ///< channel of `text`; of its end when the token ends one channel and begins another
};

class AnswerText {
public:
    /// `kind` says how the text is divided into channels. Raw text and formats without channels use
    /// AnswerForm::Plain, which puts all text into the channel "final".
    AnswerText(AnswerForm form, std::shared_ptr<const Tokenizer> tokenizer, const std::vector<std::string>& stops);

    AnswerPiece push(std::int32_t id);
    /// Called when the request ends without a stop string. Returns the text that was held back because a stop string
    /// could have begun in it.
    AnswerPiece finish();
    bool stopped() const { return stop_.hit(); }

    /// All text so far, by channel. The answer itself is in the channel "final".
    const std::map<std::string, std::string>& channels() const { return channels_; }

private:
    void show(AnswerPiece& piece, const std::string& text);
    AnswerPiece take(const std::vector<ChannelText>& chunks);

    ChannelParser parser_;
    StopText stop_;
    std::string channel_ = "final";
    std::map<std::string, std::string> channels_;
};

} // namespace vitrine::engine
