// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/row_options.h"

#include "engine/workload/common/chat_choice.h"

namespace vitrine::engine {

TrainingRowOptions rowOptions(const Run& run, const ModelSource& source) {
    TrainingRowOptions out;
    out.vocab = source.config.vocab;
    out.eosTokens = source.generation.eosTokens.empty() ? source.config.eosTokens : source.generation.eosTokens;
    out.chat = chosenChatOptions(run);
    out.chat.addGenerationPrompt = false;
    if (source.tokenizerFile.empty()) {
        return out;
    }
    out.tokenizer = Tokenizer::load(source.tokenizerFile);
    out.format = chosenChatFormat(run, source, out.tokenizer);
    if (out.format != nullptr) {
        warnOfUnreadOptions(*out.format, out.chat);
    }
    return out;
}

} // namespace vitrine::engine
