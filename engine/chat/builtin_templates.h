// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Chat templates for models whose files have none: one for each family of formats, chosen by the tokenizer's tokens.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "engine/chat/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {

/// The values of the option chat_format beside "auto".
inline constexpr std::array<std::string_view, 5> kBuiltInTemplates = {"harmony", "chatml", "llama3", "mistral",
                                                                      "gemma"};

/// The family by the tokens of the tokenizer, else by the model's type. Nothing when none fits: such a model can only
/// be given raw text.
std::optional<std::string_view> chooseBuiltInTemplate(std::string_view modelType, const Tokenizer& tokenizer);

/// The template of a family. Throws Unsupported when the tokenizer lacks a token that it needs.
ChatTemplate builtInTemplate(std::string_view name, std::string_view modelType, const Tokenizer& tokenizer);

} // namespace vitrine::engine
