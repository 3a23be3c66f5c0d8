// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a model's files say about chats: Jinja templates and the texts of special tokens.

#include <map>
#include <string>

namespace vitrine::engine {

class GgufHeader;

struct ChatFiles {
    /// Templates by name: "default", and "tool_use" where a model has one of its own for tools. Empty: none.
    std::map<std::string, std::string> templates;
    /// Where a template stands, for messages, by its name.
    std::map<std::string, std::string> places;
    /// bos_token, eos_token and so on, as templates name them.
    std::map<std::string, std::string> specialTokens;
};

/// Of a folder in Hugging Face form: chat_template.jinja, additional_chat_templates/NAME.jinja, else chat_template of
/// tokenizer_config.json (a text, or a list of named ones); special tokens of tokenizer_config.json, else of
/// special_tokens_map.json. What has another form is named in a warning: it must not keep the model from loading.
ChatFiles readChatFiles(const std::string& folder);
/// Of a GGUF file.
ChatFiles readChatFiles(const GgufHeader& header);

} // namespace vitrine::engine
