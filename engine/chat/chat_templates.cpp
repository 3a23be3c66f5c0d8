// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// ChatML, Llama 3, Mistral and Gemma: each prints what the family's published chat template prints.

#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/chat/chat_render.h"

namespace vitrine::engine {

namespace {

std::string_view withoutNewlines(std::string_view text, bool left, bool right) {
    while (left && text.starts_with('\n')) {
        text.remove_prefix(1);
    }
    while (right && text.ends_with('\n')) {
        text.remove_suffix(1);
    }
    return text;
}

void refuseTools(const ChatMessage& chat, std::string_view format) {
    if (chat.role == "tool" || !chat.toolCalls.empty()) {
        throw base::Unsupported(fmt::format("messages: tool messages are not supported in the chat format {}", format));
    }
}

void refuseSameRoleTwice(std::span<const ChatMessage> messages) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if ((messages[i].role == "user") != (i % 2 == 0)) {
            throw base::BadInput("messages: roles must alternate user, assistant, user, ... in this chat format");
        }
    }
}

/// Thought and answer of an assistant message of Qwen 3, also when the thought stands in the content.
struct SplitAnswer {
    std::string_view thought;
    std::string_view answer;
};

SplitAnswer splitThought(const ChatMessage& chat) {
    constexpr std::string_view kOpen = "<think>";
    constexpr std::string_view kClose = "</think>";
    const std::string_view content = chat.content;
    const std::size_t firstClose = content.find(kClose);
    if (!chat.thinking.empty() || firstClose == std::string_view::npos) {
        return {chat.thinking, content};
    }
    std::string_view thought = withoutNewlines(content.substr(0, firstClose), false, true);
    if (const std::size_t open = thought.rfind(kOpen); open != std::string_view::npos) {
        thought = thought.substr(open + kOpen.size());
    }
    const std::string_view answer = content.substr(content.rfind(kClose) + kClose.size());
    return {withoutNewlines(thought, true, false), withoutNewlines(answer, true, false)};
}

void chatMlAssistant(PromptBuilder& prompt, const ChatMessage& chat, const ChatInput& input, bool afterLastQuery,
                     bool last) {
    SplitAnswer parts{chat.thinking, chat.content};
    if (input.style.thinkTags) {
        parts = splitThought(chat);
        if (afterLastQuery && (last || !parts.thought.empty())) {
            prompt.tokenOrText("<think>").text("\n").text(withoutNewlines(parts.thought, true, true)).text("\n");
            prompt.tokenOrText("</think>").text("\n\n");
            parts.answer = withoutNewlines(parts.answer, true, false);
        }
    }
    prompt.text(parts.answer);
    bool first = true;
    for (const ToolCall& call : chat.toolCalls) {
        prompt.text(first && parts.answer.empty() ? "" : "\n").tokenOrText("<tool_call>");
        prompt.text(fmt::format("\n{{\"name\": \"{}\", \"arguments\": {}}}\n", call.name, call.arguments));
        prompt.tokenOrText("</tool_call>");
        first = false;
    }
}

} // namespace

void renderChatMl(PromptBuilder& prompt, const ChatInput& input) {
    const auto open = [&](std::string_view role) { prompt.token("<|im_start|>").text(role).text("\n"); };
    const auto close = [&] { prompt.token("<|im_end|>").text("\n"); };
    if (input.hasSystem || !input.style.defaultSystem.empty()) {
        open("system");
        prompt.text(input.hasSystem ? input.system : std::string_view(input.style.defaultSystem));
        close();
    }
    std::size_t lastQuery = input.messages.size();
    for (std::size_t i = 0; i < input.messages.size(); ++i) {
        lastQuery = input.messages[i].role == "user" ? i : lastQuery;
    }
    for (std::size_t i = 0; i < input.messages.size(); ++i) {
        const ChatMessage& chat = input.messages[i];
        const bool last = i + 1 == input.messages.size();
        if (chat.role == "tool") {
            if (i == 0 || input.messages[i - 1].role != "tool") {
                prompt.token("<|im_start|>").text("user");
            }
            prompt.text("\n").tokenOrText("<tool_response>").text("\n").text(chat.content).text("\n");
            prompt.tokenOrText("</tool_response>");
            if (last || input.messages[i + 1].role != "tool") {
                close();
            }
            continue;
        }
        open(chat.role);
        if (chat.role == "assistant") {
            chatMlAssistant(prompt, chat, input, i > lastQuery, last);
        } else {
            prompt.text(chat.content);
        }
        close();
    }
    if (input.options.addGenerationPrompt) {
        open("assistant");
        if (input.style.thinkTags && !input.options.enableThinking) {
            prompt.tokenOrText("<think>").text("\n\n").tokenOrText("</think>").text("\n\n");
        }
    }
}

void renderLlama3(PromptBuilder& prompt, const ChatInput& input) {
    constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto header = [&](std::string_view role) {
        prompt.token("<|start_header_id|>").text(role).token("<|end_header_id|>").text("\n\n");
    };
    prompt.optionalToken("<|begin_of_text|>");
    if (input.hasSystem || input.style.dates) {
        header("system");
        if (input.style.dates) {
            // The template of Llama 3.1 names this day when its caller pins none.
            const bool ownDay = input.options.date.empty() && !input.style.datesFromClock;
            const CalendarDate date = ownDay ? CalendarDate{2024, 7, 26} : chatDate(input.options);
            prompt.text(fmt::format("Cutting Knowledge Date: December 2023\nToday Date: {:02} {} {}\n\n", date.day,
                                    kMonths[static_cast<std::size_t>(date.month) - 1], date.year));
        }
        prompt.text(trimmed(input.system)).token("<|eot_id|>");
    }
    for (const ChatMessage& chat : input.messages) {
        if (!chat.toolCalls.empty()) {
            if (chat.toolCalls.size() != 1) {
                throw base::BadInput("messages: Llama 3 makes one tool call in a message");
            }
            header("assistant");
            prompt.text(fmt::format("{{\"name\": \"{}\", \"parameters\": {}}}", chat.toolCalls[0].name,
                                    chat.toolCalls[0].arguments));
        } else if (chat.role == "tool") {
            header("ipython");
            // The template writes the result as JSON, so a text gets quotes.
            using Json = nlohmann::json;
            prompt.text(Json(chat.content).dump(-1, ' ', false, Json::error_handler_t::replace));
        } else {
            header(chat.role);
            prompt.text(trimmed(chat.content));
        }
        prompt.token("<|eot_id|>");
    }
    if (input.options.addGenerationPrompt) {
        header("assistant");
    }
}

void renderMistral(PromptBuilder& prompt, const ChatInput& input) {
    refuseSameRoleTwice(input.messages);
    const ChatStyle& style = input.style;
    prompt.token("<s>");
    const std::string_view space = style.spaceAfterOpen ? " " : "";
    if (input.hasSystem && style.systemTokens) {
        prompt.tokenOrText("[SYSTEM_PROMPT]").text(space).text(input.system).tokenOrText("[/SYSTEM_PROMPT]");
    }
    std::size_t systemTurn = 0;
    for (std::size_t i = 0; style.systemInLastTurn && i < input.messages.size(); ++i) {
        systemTurn = input.messages[i].role == "user" ? i : systemTurn;
    }
    for (std::size_t i = 0; i < input.messages.size(); ++i) {
        const ChatMessage& chat = input.messages[i];
        refuseTools(chat, "mistral");
        if (chat.role == "user") {
            prompt.text(style.leadingSpace ? " " : "").tokenOrText("[INST]").text(space);
            if (input.hasSystem && !style.systemTokens && i == systemTurn) {
                prompt.text(input.system).text("\n\n");
            }
            prompt.text(chat.content).text(style.spaceBeforeClose ? " " : "").tokenOrText("[/INST]");
        } else {
            prompt.text(style.spaceBeforeAnswer ? " " : "")
                .text(style.trimsAnswer ? trimmed(chat.content) : chat.content);
            prompt.token("</s>");
            prompt.text(style.spaceAfterEnd ? " " : "");
        }
    }
}

void renderGemma(PromptBuilder& prompt, const ChatInput& input) {
    refuseSameRoleTwice(input.messages);
    prompt.optionalToken("<bos>");
    for (std::size_t i = 0; i < input.messages.size(); ++i) {
        const ChatMessage& chat = input.messages[i];
        refuseTools(chat, "gemma");
        prompt.token("<start_of_turn>").text(chat.role == "assistant" ? "model" : chat.role).text("\n");
        if (i == 0 && input.hasSystem) {
            prompt.text(input.system).text("\n\n");
        }
        prompt.text(trimmed(chat.content)).token("<end_of_turn>").text("\n");
    }
    if (input.options.addGenerationPrompt) {
        prompt.token("<start_of_turn>").text("model\n");
    }
}

} // namespace vitrine::engine
