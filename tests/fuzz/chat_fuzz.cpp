// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any bytes as a conversation and as a chat template: a prompt, BadInput or Unsupported. The prompt's ids are then read
// back as if a model had written them. Bytes: format, where the template ends, template, messages.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/chat/builtin_templates.h"
#include "engine/chat/channel_parser.h"
#include "engine/chat/chat_format.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/training/data/chat_mask.h"

namespace base = vitrine::base;
namespace engine = vitrine::engine;

namespace {

constexpr std::array kSpecial = {
    "<|start|>",
    "<|end|>",
    "<|message|>",
    "<|channel|>",
    "<|constrain|>",
    "<|return|>",
    "<|call|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<s>",
    "</s>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<eos>",
};

/// One token for each byte, and every token that a format needs.
std::shared_ptr<const engine::Tokenizer> byteTokenizer() {
    nlohmann::json vocab = nlohmann::json::object();
    for (int byte = 0; byte < 256; ++byte) {
        vocab[fmt::format("<0x{:02X}>", byte)] = byte;
    }
    nlohmann::json added = nlohmann::json::array();
    for (std::size_t i = 0; i < kSpecial.size(); ++i) {
        vocab[kSpecial[i]] = 256 + i;
        added.push_back({{"id", 256 + i}, {"content", kSpecial[i]}, {"special", true}});
    }
    const nlohmann::json decoders = {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    const nlohmann::json root = {
        {"added_tokens", added},
        {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
        {"model", {{"type", "BPE"}, {"byte_fallback", true}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
    return engine::Tokenizer::fromJsonText(root.dump(), "byte tokenizer");
}

void readBack(engine::AnswerForm form, const std::shared_ptr<const engine::Tokenizer>& tokenizer,
              const std::vector<std::int32_t>& ids) {
    engine::ChannelParser parser(form, tokenizer);
    std::size_t streamed = 0;
    const auto count = [&streamed](const std::vector<engine::ChannelText>& chunks) {
        for (const engine::ChannelText& chunk : chunks) {
            streamed += chunk.text.size();
        }
    };
    for (const std::int32_t id : ids) {
        count(parser.push(id));
    }
    count(parser.finish());
    std::size_t kept = 0;
    for (const engine::ChannelMessage& message : parser.messages()) {
        kept += message.text.size();
    }
    if (kept != streamed) {
        std::abort();
    }
}

/// Any template, or for the last numbers a built-in one.
engine::ChatFormat formatOf(std::uint8_t number, const std::shared_ptr<const engine::Tokenizer>& tokenizer,
                            const std::string& chatTemplate) {
    const std::size_t builtIn = number % 8;
    return builtIn < engine::kBuiltInTemplates.size()
               ? engine::ChatFormat(tokenizer,
                                    engine::builtInTemplate(engine::kBuiltInTemplates.at(builtIn), "qwen3", *tokenizer))
               : engine::ChatFormat(tokenizer, engine::ChatTemplate(chatTemplate, "fuzz"));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::shared_ptr<const engine::Tokenizer> kTokenizer = byteTokenizer();
    if (size < 2) {
        return 0;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
    const std::size_t templateSize = bytes.size() * data[1] / 512;
    engine::ChatOptions options;
    options.date = "2025-06-28";
    options.addGenerationPrompt = (data[0] & 0x80U) != 0;
    options.thinking = (data[0] & 0x40U) != 0;
    options.continueFinalMessage = (data[0] & 0x20U) != 0;
    try {
        const std::vector<engine::ChatMessage> messages = engine::parseChatMessages(bytes.substr(templateSize), "fuzz");
        const engine::ChatFormat format = formatOf(data[0], kTokenizer, std::string(bytes.substr(0, templateSize)));
        readBack(format.answerForm(), kTokenizer, format.render(messages, options).ids);
        const engine::MaskedChat masked = engine::maskedChat(format, messages, options);
        if (masked.tokens.size() != masked.trained.size()) {
            std::abort();
        }
    } catch (const base::BadInput&) {
        return 0;
    } catch (const base::Unsupported&) {
        return 0;
    }
    return 0;
}
