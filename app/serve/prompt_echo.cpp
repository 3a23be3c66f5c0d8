// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/prompt_echo.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace vitrine::app {
namespace {

/// Special tokens that the tokenizer added to a text do not stand in it.
bool standsAt(const PromptEcho& echo, std::size_t offset, const std::string& piece) {
    return echo.text.compare(std::min(offset, echo.text.size()), piece.size(), piece) == 0;
}

void findOffsets(PromptEcho& echo, const std::shared_ptr<const engine::Tokenizer>& tokenizer) {
    engine::StreamDecoder decoder(tokenizer, true);
    std::size_t offset = 0;
    for (const std::int32_t id : echo.ids) {
        echo.offsets.push_back(static_cast<std::int64_t>(std::min(offset, echo.text.size())));
        if (!tokenizer->isSpecial(id)) {
            offset += decoder.push(id).size();
        } else if (const std::string piece = tokenizer->decode({&id, 1}); standsAt(echo, offset, piece)) {
            offset += piece.size();
        }
    }
}

} // namespace

std::string tokenText(const engine::Tokenizer* tokenizer, std::int64_t index, std::int32_t id) {
    return tokenizer == nullptr ? fmt::format("{}{}", index > 0 ? " " : "", id) : tokenizer->decode({&id, 1});
}

PromptEcho promptEcho(const std::string* text, std::vector<std::int32_t> ids,
                      const std::shared_ptr<const engine::Tokenizer>& tokenizer) {
    PromptEcho echo;
    echo.ids = std::move(ids);
    if (tokenizer != nullptr) {
        echo.text = text == nullptr ? tokenizer->decode(echo.ids) : *text;
        findOffsets(echo, tokenizer);
        return echo;
    }
    for (const std::int32_t id : echo.ids) {
        echo.offsets.push_back(static_cast<std::int64_t>(echo.text.size()));
        echo.text += tokenText(nullptr, std::ssize(echo.offsets) - 1, id);
    }
    return echo;
}

std::vector<TokenLogprob> promptLogprobs(const PromptEcho& echo, const engine::Tokenizer* tokenizer,
                                         std::span<const engine::PromptScore> scores) {
    std::vector<TokenLogprob> out;
    for (std::size_t i = 0; i < echo.ids.size(); ++i) {
        const auto index = static_cast<std::int64_t>(i);
        TokenLogprob& token = out.emplace_back();
        token.text = tokenText(tokenizer, index, echo.ids[i]);
        token.offset = echo.offsets[i];
        token.known = i > 0 && i <= scores.size();
        if (token.known) {
            const engine::PromptScore& score = scores[i - 1];
            token.logprob = score.logprob;
            for (const auto& [id, logprob] : score.top) {
                token.best.emplace_back(tokenText(tokenizer, index, id), logprob);
            }
        }
    }
    return out;
}

} // namespace vitrine::app
