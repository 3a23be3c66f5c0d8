// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The text of one request while its tokens come: decoded, parted into channels, ended by stop strings.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/generation/stop_text.h"
#include "engine/tokenizer/channel_parser.h"

namespace vitrine::engine {

/// Text that became showable with one token.
struct AnswerPiece {
    std::string text;
    std::string channel = "final"; ///< of its last part, where a token ends one channel and begins another
};

class AnswerText {
public:
    /// Formats without channels, and raw text, are read with ChatFormatKind::ChatMl: all text is "final".
    AnswerText(ChatFormatKind kind, std::shared_ptr<const Tokenizer> tokenizer, const std::vector<std::string>& stops);

    AnswerPiece push(std::int32_t id);
    /// What was held back when the request ended without a stop string.
    AnswerPiece finish();
    bool stopped() const { return stop_.hit(); }

    /// Texts by channel, in full; the answer itself is "final".
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
