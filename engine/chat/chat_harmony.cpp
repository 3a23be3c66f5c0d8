// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Harmony, the format of gpt-oss: every message is <|start|>header<|message|>content<|end|>.

#include <fmt/format.h>

#include "base/error.h"
#include "engine/chat/chat_render.h"

namespace vitrine::engine {

namespace {

constexpr std::string_view kIdentity = "You are ChatGPT, a large language model trained by OpenAI.";
constexpr std::string_view kKnowledgeCutoff = "2024-06";

void message(PromptBuilder& prompt, std::string_view role, std::string_view channel, std::string_view content,
             std::string_view end = "<|end|>") {
    prompt.token("<|start|>").text(role);
    if (!channel.empty()) {
        prompt.token("<|channel|>").text(channel);
    }
    prompt.token("<|message|>").text(content).token(end);
}

void systemMessage(PromptBuilder& prompt, const ChatOptions& options) {
    if (options.reasoningEffort != "low" && options.reasoningEffort != "medium" && options.reasoningEffort != "high") {
        throw base::BadInput("reasoning_effort: must be low, medium or high");
    }
    const CalendarDate date = chatDate(options);
    message(prompt, "system", "",
            fmt::format("{}\nKnowledge cutoff: {}\nCurrent date: {:04}-{:02}-{:02}\n\nReasoning: {}\n\n"
                        "# Valid channels: analysis, commentary, final. Channel must be included for every message.",
                        kIdentity, kKnowledgeCutoff, date.year, date.month, date.day, options.reasoningEffort));
}

void refuseChannelTags(const ChatMessage& chat) {
    for (const std::string& text : {chat.content, chat.thinking}) {
        if (text.find("<|channel|>analysis<|message|>") != std::string::npos ||
            text.find("<|channel|>final<|message|>") != std::string::npos) {
            throw base::BadInput("messages: the text of an assistant message has channel tags; put thoughts into "
                                 "\"thinking\" and the answer into \"content\"");
        }
    }
}

bool finalFollows(std::span<const ChatMessage> later) {
    for (const ChatMessage& chat : later) {
        if (chat.role == "assistant" && chat.toolCalls.empty()) {
            return true;
        }
    }
    return false;
}

void assistantCalls(PromptBuilder& prompt, const ChatMessage& chat, bool dropThoughts) {
    if (!chat.content.empty() && !chat.thinking.empty()) {
        throw base::BadInput("messages: an assistant message with tool_calls can have content or thinking, not both");
    }
    const std::string& thought = chat.thinking.empty() ? chat.content : chat.thinking;
    if (!thought.empty() && !dropThoughts) {
        message(prompt, "assistant", "analysis", thought);
    }
    for (const ToolCall& call : chat.toolCalls) {
        message(prompt, "assistant to=functions." + call.name, "commentary json", call.arguments, "<|call|>");
    }
}

} // namespace

void renderHarmony(PromptBuilder& prompt, const ChatInput& input) {
    systemMessage(prompt, input.options);
    if (!input.system.empty()) {
        message(prompt, "developer", "", fmt::format("# Instructions\n\n{}", input.system));
    }
    std::string lastCall;
    for (std::size_t i = 0; i < input.messages.size(); ++i) {
        const ChatMessage& chat = input.messages[i];
        const bool last = i + 1 == input.messages.size();
        if (chat.role == "user") {
            message(prompt, "user", "", chat.content);
        } else if (chat.role == "tool") {
            const std::string& name = chat.name.empty() ? lastCall : chat.name;
            if (name.empty()) {
                throw base::BadInput("messages: a tool message must follow an assistant message with tool_calls");
            }
            message(prompt, "functions." + name + " to=assistant", "commentary", chat.content);
        } else if (!chat.toolCalls.empty()) {
            refuseChannelTags(chat);
            assistantCalls(prompt, chat, finalFollows(input.messages.subspan(i + 1)));
            lastCall = chat.toolCalls.back().name;
        } else {
            refuseChannelTags(chat);
            const bool training = last && !input.options.addGenerationPrompt;
            if (training && !chat.thinking.empty()) {
                message(prompt, "assistant", "analysis", chat.thinking);
            }
            message(prompt, "assistant", "final", chat.content, training ? "<|return|>" : "<|end|>");
            lastCall.clear();
        }
    }
    if (input.options.addGenerationPrompt) {
        prompt.token("<|start|>").text("assistant");
    }
}

} // namespace vitrine::engine
