// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/chat_template.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/chat/jinja/ast.h"
#include "engine/chat/jinja/parser.h"
#include "engine/chat/jinja/template_run.h"
#include "engine/chat/json_value.h"
#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kContent = "content";
/// Put behind the last message's text to find it again in the prompt. The space shows whether the template trimmed it.
constexpr std::string_view kEndTag = "CONTINUE_FINAL_MESSAGE_TAG ";

/// Today by the local clock, or the date that the options pin. Throws BadInput.
std::tm dayOf(const std::string& text) {
    std::tm out{};
    if (text.empty()) {
        const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
        localtime_r(&now, &out);
        return out;
    }
    bool good = text.size() == 10 && text[4] == '-' && text[7] == '-';
    for (std::size_t i = 0; good && i < text.size(); ++i) {
        good = i == 4 || i == 7 || (text[i] >= '0' && text[i] <= '9');
    }
    if (good) {
        const std::chrono::year_month_day date(std::chrono::year(std::stoi(text.substr(0, 4))),
                                               std::chrono::month(static_cast<unsigned>(std::stoi(text.substr(5, 2)))),
                                               std::chrono::day(static_cast<unsigned>(std::stoi(text.substr(8, 2)))));
        good = date.ok();
        if (good) {
            out.tm_year = static_cast<int>(date.year()) - 1900;
            out.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
            out.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
            const std::chrono::sys_days day(date);
            out.tm_wday = static_cast<int>(std::chrono::weekday(day).c_encoding());
            out.tm_yday = static_cast<int>((day - std::chrono::sys_days(date.year() / 1 / 1)).count());
        }
    }
    if (!good) {
        throw base::BadInput(fmt::format("date: {} is not a date; write it as YYYY-MM-DD", quotedForMessage(text)));
    }
    return out;
}

/// The date as the variable date_string of Llama's templates has it.
std::string dateString(const std::tm& day) {
    std::array<char, 64> buffer{};
    return {buffer.data(), std::strftime(buffer.data(), buffer.size(), "%d %b %Y", &day)};
}

bool namesContent(const jinja::Expr* expr) {
    while (expr != nullptr && (expr->kind == jinja::ExprKind::Filter || expr->kind == jinja::ExprKind::Slice)) {
        expr = expr->left;
    }
    if (expr == nullptr) {
        return false;
    }
    switch (expr->kind) {
    case jinja::ExprKind::Name:
        return expr->text.find(kContent) != std::string::npos;
    case jinja::ExprKind::Attribute:
        return expr->text == kContent;
    case jinja::ExprKind::Item:
        return expr->right != nullptr && expr->right->kind == jinja::ExprKind::String && expr->right->text == kContent;
    default:
        return false;
    }
}

bool takesParts(const jinja::Tree& tree) {
    return std::any_of(tree.statements.begin(), tree.statements.end(), [](const auto& statement) {
        return statement->kind == jinja::StmtKind::For && namesContent(statement->value);
    });
}

/// The members that a template sees: as given, without what is null, thoughts under every name that templates read.
Json seenMembers(const ChatMessage& message, bool asParts) {
    Json out = Json::object();
    const Json* reasoning = nullptr;
    for (const char* const name : kThoughtNames) {
        const auto found = message.members().find(name);
        if (reasoning == nullptr && found != message.members().end() && !found->is_null()) {
            reasoning = &*found;
        }
    }
    if (reasoning != nullptr) {
        out["thinking"] = *reasoning;
    }
    for (const auto& [key, value] : message.members().items()) {
        if (!value.is_null()) {
            out[key] = key == kContent && value.is_array() && !asParts ? Json(message.text()) : value;
        }
    }
    if (reasoning != nullptr) {
        out["reasoning_content"] = *reasoning;
    }
    return out;
}

/// Marks the end of a text that the answer goes on with.
void markEnd(Json& message) {
    const auto content = message.find(std::string(kContent));
    if (content != message.end() && content->is_string()) {
        *content = content->get<std::string>() + std::string(kEndTag);
        return;
    }
    if (content != message.end() && content->is_array() && !content->empty()) {
        Json& text = content->back()["text"];
        text = text.get<std::string>() + std::string(kEndTag);
        return;
    }
    throw base::BadInput("continue_final_message: the last message has no text to go on with; give it a \"content\"");
}

/// The prompt up to the mark.
jinja::Text cutAtMark(const jinja::Text& prompt, const std::string& place) {
    const std::string_view bare = kEndTag.substr(0, kEndTag.size() - 1);
    const std::size_t at = prompt.bytes().rfind(bare);
    if (at == std::string::npos) {
        throw base::BadInput(fmt::format("continue_final_message: {} does not print the text of the last message as it "
                                         "is; leave the field away",
                                         place));
    }
    if (std::string_view(prompt.bytes()).substr(at).starts_with(kEndTag)) {
        return prompt.part(0, at);
    }
    // The template cut white space off the message, which then has none at its end either.
    std::size_t end = at;
    while (end > 0) {
        const std::size_t before = end;
        do {
            --end;
        } while (end > 0 && (static_cast<unsigned char>(prompt.bytes()[end]) & 0xC0U) == 0x80U);
        std::size_t next = end;
        if (!isWhiteSpace(nextCodePoint(prompt.bytes(), next))) {
            end = before;
            break;
        }
    }
    return prompt.part(0, end);
}

class Variables {
public:
    explicit Variables(jinja::Heap& heap) : heap_(heap) {}

    /// A later value for the same name wins.
    void set(const std::string& name, jinja::Value value) {
        const auto found =
            std::find_if(values_.begin(), values_.end(), [&](const auto& each) { return each.first == name; });
        if (found != values_.end()) {
            found->second = value;
        } else {
            values_.emplace_back(name, value);
        }
    }
    void setText(const std::string& name, const std::string& text, jinja::Origin origin) {
        set(name, heap_.string(jinja::Text(text, origin)));
    }
    const std::vector<std::pair<std::string, jinja::Value>>& values() const { return values_; }

private:
    jinja::Heap& heap_;
    std::vector<std::pair<std::string, jinja::Value>> values_;
};

jinja::Value messageValue(jinja::Heap& heap, const Json& members, std::size_t index) {
    const jinja::Value out = heap.dict();
    const auto origin = static_cast<jinja::Origin>(jinja::kFirstMessage + index);
    for (const auto& [key, member] : members.items()) {
        // What names a message is no part of its text.
        const bool label = key == "role" || key == "name" || key == "tool_call_id";
        out.dict().entries.emplace_back(heap.string(jinja::Text(key, jinja::kInput)),
                                        templateValue(heap, member, label ? jinja::kInput : origin));
    }
    return out;
}

void setOptions(Variables& variables, jinja::Heap& heap, const ChatOptions& options, const std::tm& day) {
    variables.set("tools", options.tools.empty()
                               ? jinja::Value::none()
                               : templateValue(heap, base::parseOrderedJson(options.tools, "tools"), jinja::kInput));
    variables.set("documents", jinja::Value::none());
    variables.set("add_generation_prompt", jinja::Value::boolean(options.addGenerationPrompt));
    if (!options.reasoningEffort.empty()) {
        variables.setText("reasoning_effort", options.reasoningEffort, jinja::kInput);
    }
    if (options.thinking) {
        variables.set("enable_thinking", jinja::Value::boolean(*options.thinking));
    }
    if (!options.date.empty()) {
        variables.setText("date_string", dateString(day), jinja::kInput);
    }
    if (!options.variables.empty()) {
        const Json further = base::parseOrderedJson(options.variables, "chat_template_kwargs");
        for (const auto& [name, value] : further.items()) {
            variables.set(name, templateValue(heap, value, jinja::kInput));
        }
    }
}

bool isWordByte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

} // namespace

std::string dayToday() {
    const std::tm day = dayOf({});
    std::array<char, 16> buffer{};
    return {buffer.data(), std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d", &day)};
}

std::int64_t messageOf(jinja::Origin origin) {
    const jinja::Origin plain = origin & ~jinja::kGenerated;
    return plain >= jinja::kFirstMessage ? static_cast<std::int64_t>(plain - jinja::kFirstMessage) : -1;
}

ChatTemplate::ChatTemplate(std::string text, std::string place) : text_(std::move(text)), place_(std::move(place)) {
    if (!isValidUtf8(text_)) {
        throw base::BadInput(place_ + ": is not valid UTF-8; save it as UTF-8");
    }
    try {
        tree_ = jinja::parseTemplate(text_);
    } catch (const base::BadInput& error) {
        throw base::BadInput(fmt::format("{}: {}", place_, error.message()));
    }
    marksAnswers_ = tree_->hasGeneration;
    takesParts_ = takesParts(*tree_);
}

jinja::Text ChatTemplate::render(std::span<const ChatMessage> messages,
                                 const std::map<std::string, std::string>& specialTokens,
                                 const ChatOptions& options) const {
    const std::tm day = dayOf(options.date.empty() ? options.today : options.date);
    jinja::Heap heap;
    std::vector<jinja::Value> list;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        Json members = seenMembers(messages[i], takesParts_);
        if (options.continueFinalMessage && i + 1 == messages.size()) {
            markEnd(members);
        }
        list.push_back(messageValue(heap, members, i));
    }
    Variables variables(heap);
    for (const auto& [name, text] : specialTokens) {
        variables.setText(name, text, jinja::kTemplate);
    }
    variables.set("messages", heap.list(std::move(list)));
    setOptions(variables, heap, options, day);
    try {
        jinja::Text prompt = jinja::TemplateRun(*tree_, heap, day).render(variables.values());
        return options.continueFinalMessage ? cutAtMark(prompt, place_) : prompt;
    } catch (const jinja::TemplateRefusal& refusal) {
        throw base::BadInput(fmt::format("messages: the chat template refuses them: {}",
                                         refusal.message().empty() ? "it does not say why" : refusal.message()));
    } catch (const base::BadInput& error) {
        if (error.message().starts_with("line ")) {
            throw base::BadInput(fmt::format("{}: {}", place_, error.message()));
        }
        throw;
    }
}

bool ChatTemplate::names(std::string_view variable) const {
    for (std::size_t at = text_.find(variable); at != std::string::npos; at = text_.find(variable, at + 1)) {
        const std::size_t end = at + variable.size();
        if ((at == 0 || !isWordByte(text_[at - 1])) && (end == text_.size() || !isWordByte(text_[end]))) {
            return true;
        }
    }
    return false;
}

} // namespace vitrine::engine
