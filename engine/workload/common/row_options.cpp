// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/row_options.h"

#include <optional>

namespace vitrine::engine {

TrainingRowOptions rowOptions(const Run& run, const ModelSource& source) {
    TrainingRowOptions out;
    out.vocab = source.config.vocab;
    out.eosTokens = source.generation.eosTokens.empty() ? source.config.eosTokens : source.generation.eosTokens;
    out.chat.date = run.spec.text("date");
    out.chat.addGenerationPrompt = false;
    if (source.tokenizerFile.empty()) {
        return out;
    }
    out.tokenizer = Tokenizer::load(source.tokenizerFile);
    const std::string family(familyName(source.config.family));
    const std::string name = run.spec.text("chat_format");
    const std::optional<ChatFormatKind> kind =
        name == "auto" ? chooseChatFormat(family, *out.tokenizer, source.chatTemplate) : chatFormatByName(name);
    if (kind) {
        out.format = std::make_shared<const ChatFormat>(*kind, out.tokenizer, family, source.chatTemplate);
    }
    return out;
}

} // namespace vitrine::engine
