// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <optional>
#include <string>

namespace vitrine::engine {

/// What a conversation is rendered with besides its messages. A template need not look at any of it.
struct ChatOptions {
    std::string system;              ///< a system message before the conversation; empty: none
    std::string date;                ///< YYYY-MM-DD; empty: what the template does by itself, mostly today
    std::string today;               ///< YYYY-MM-DD, where `date` is empty: the clock's day; empty: the clock is asked
    std::string reasoningEffort;     ///< variable reasoning_effort; empty: as the template does by itself
    std::optional<bool> thinking;    ///< variable enable_thinking; unset: as the template does by itself
    std::string tools;               ///< JSON list of functions that the model may call; empty: none
    std::string variables;           ///< JSON object of further variables, which win over all others; empty: none
    bool addGenerationPrompt = true; ///< ends where the assistant's answer begins
    bool continueFinalMessage = false; ///< ends within the last message, which the answer goes on with
};

} // namespace vitrine::engine
