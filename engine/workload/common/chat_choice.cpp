// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/chat_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/strict_json.h"

namespace vitrine::engine {

std::shared_ptr<const ChatFormat> chosenChatFormat(const Run& run, const ModelSource& source,
                                                   const std::shared_ptr<const Tokenizer>& tokenizer) {
    const ChatChoice choice{run.spec.text("chat_format"), run.spec.text("chat_template")};
    return makeChatFormat(choice, source.chat, familyName(source.config.family), tokenizer);
}

ChatOptions chosenChatOptions(const Run& run) {
    ChatOptions out;
    out.system = run.spec.text("system");
    out.date = run.spec.text("date");
    out.today = run.today;
    out.reasoningEffort = run.spec.text("reasoning_effort");
    if (const std::string thinking = run.spec.text("enable_thinking"); !thinking.empty()) {
        out.thinking = thinking == "on";
    }
    if (const std::string path = run.spec.text("tools"); !path.empty()) {
        const nlohmann::ordered_json tools = base::readOrderedJson(path);
        if (!tools.is_array() || tools.empty()) {
            throw base::BadInput(path +
                                 ": must be a list of tools, as [{\"type\": \"function\", \"function\": {...}}]");
        }
        out.tools = tools.dump();
    }
    out.variables = run.spec.text("chat_template_kwargs");
    if (!out.variables.empty() && !base::parseOrderedJson(out.variables, "chat_template_kwargs").is_object()) {
        throw base::BadInput("chat_template_kwargs: must be a JSON object, as {\"enable_thinking\": false}");
    }
    return out;
}

void warnOfUnreadOptions(const ChatFormat& format, const ChatOptions& options) {
    if (const std::vector<std::string> unread = format.unread(options); !unread.empty()) {
        base::logWarning(fmt::format("{}: not used: {} does not read {}", fmt::join(unread, ", "),
                                     format.templateFor(options).place(), unread.size() > 1 ? "them" : "it"));
    }
}

} // namespace vitrine::engine
