// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/row_layouts.h"

#include <array>
#include <fmt/format.h>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/strict_json.h"
#include "engine/tokenizer/json_field.h"
#include "engine/training/data/row_messages.h"

namespace vitrine::engine {

namespace {

/// Keys of rows with which other trainers choose or weigh what is trained.
constexpr std::array<std::string_view, 21> kLossKeys = {
    "weight",       "weights",     "sample_weight",   "loss_weight",     "loss_scale",     "train",     "trainable",
    "training",     "mask",        "train_on_input",  "train_on_inputs", "train_detail",   "loss_mask", "mask_prompt",
    "mask_history", "prompt_mask", "completion_mask", "assistant_masks", "step_loss_mask", "kto_tag",   "labels"};
/// Keys of conversations that change what is shown to the model.
constexpr std::array<std::string_view, 13> kTemplateKeys = {"chat_template",
                                                            "chat_template_kwargs",
                                                            "documents",
                                                            "functions",
                                                            "function_call",
                                                            "reasoning_effort",
                                                            "enable_thinking",
                                                            "images",
                                                            "image",
                                                            "videos",
                                                            "video",
                                                            "audios",
                                                            "audio"};

/// Makes the form of one row.
class LayoutReader {
public:
    LayoutReader(RowJson& row, const std::string& place, RowNotes& notes) : row_(row), place_(place), notes_(notes) {}

    RowForm read() {
        const std::string_view layout = chooseLayout();
        if (layout == "text") {
            form_.text = stringOf(row_["text"], at("text"));
            noteOthers({"text"}, false);
        } else if (layout == "tokens" || layout == "input_ids") {
            readTokens(std::string(layout));
        } else if (layout == "prompt") {
            readCompletion();
        } else if (layout == "instruction") {
            readInstruction();
        } else {
            readConversation(std::string(layout));
        }
        return std::move(form_);
    }

private:
    std::string at(std::string_view field) const { return fmt::format("{}: {}", place_, field); }

    std::string_view chooseLayout() const {
        if (!row_.is_object()) {
            badRow(place_,
                   fmt::format("must be an object with \"messages\", \"text\" or another layout of rows, not {}",
                               row_.type_name()));
        }
        std::vector<std::string_view> found;
        for (const std::string_view key : {"messages", "conversations", "text", "tokens", "input_ids"}) {
            if (memberOf(row_, key) != nullptr) {
                found.push_back(key);
            }
        }
        if (memberOf(row_, "prompt") != nullptr && row_.contains("completion")) {
            found.emplace_back("prompt");
        }
        if (memberOf(row_, "instruction") != nullptr && row_.contains("output")) {
            found.emplace_back("instruction");
        }
        if (found.size() > 1) {
            badRow(place_, fmt::format("must have one of \"{}\" and \"{}\", which are two layouts of rows; remove one",
                                       found[0], found[1]));
        }
        if (found.empty() && memberOf(row_, "chosen") != nullptr) {
            badRow(at("chosen"), "rows of preferences cannot be trained; write the chosen answer as \"messages\"");
        }
        if (found.empty()) {
            badRow(place_, "must have one of \"messages\", \"conversations\", \"text\", \"tokens\", \"input_ids\", "
                           "\"prompt\" with \"completion\", and \"instruction\" with \"output\"");
        }
        return found.front();
    }

    /// Notes the keys that the layout does not use, and refuses those that say what is trained.
    void noteOthers(std::initializer_list<std::string_view> used, bool chat) {
        for (const auto& [key, value] : row_.items()) {
            if (value.is_null() || isAmong({used.begin(), used.size()}, key)) {
                continue;
            }
            if (isAmong(kLossKeys, key)) {
                badRow(at(key), "would change what is trained, which this layout of rows does not support; remove it");
            }
            if (chat && isAmong(kTemplateKeys, key) && !saysNothing(value)) {
                badRow(at(key), "would change what the model is shown, which is not supported; remove it");
            }
            notes_.unused(quotedForMessage(key));
        }
    }

    void readTokens(const std::string& ids) {
        form_.kind = RowLayout::Tokens;
        form_.tokens = take(ids);
        for (const char* key : {"trained", "completion_mask", "assistant_masks", "loss_mask"}) {
            if (memberOf(row_, key) == nullptr) {
                continue;
            }
            if (form_.marks.value != nullptr) {
                badRow(at(key), fmt::format("stands together with \"{}\"; give one of them", form_.marks.key));
            }
            form_.marks = take(key);
        }
        form_.labels = take("labels");
        checkAttention(form_.tokens.value->size());
        noteOthers({ids, "attention_mask", "position_ids", "token_type_ids"}, false);
    }

    RowList take(const std::string& key) {
        RowList list{key, nullptr};
        if (const auto found = row_.find(key); found != row_.end() && !found->is_null()) {
            list.value = std::make_shared<const nlohmann::json>(*found);
            *found = nullptr;
        }
        return list;
    }

    /// Rows without padding that are one document each have these members, and they say nothing new.
    void checkAttention(std::size_t tokens) const {
        for (const std::string_view key : {"attention_mask", "position_ids"}) {
            const RowJson* const list = memberOf(row_, key);
            if (list == nullptr) {
                continue;
            }
            bool plain = list->is_array() && list->size() == tokens;
            for (std::size_t i = 0; plain && i < tokens; ++i) {
                plain = (*list)[i].is_number_integer() && (*list)[i] == (key == "attention_mask" ? 1 : i);
            }
            if (!plain) {
                badRow(at(key), key == "attention_mask"
                                    ? "must be 1 for each token; remove padding from the row"
                                    : "must count the tokens from 0; give each document a row of its own");
            }
        }
    }

    void readCompletion() {
        const RowJson& prompt = row_["prompt"];
        const RowJson& completion = row_["completion"];
        if (memberOf(row_, "label") != nullptr && row_["label"].is_boolean()) {
            badRow(at("label"), "says whether the answer is wanted, which cannot be trained; keep the wanted rows and "
                                "remove it");
        }
        if (prompt.is_string() && completion.is_string()) {
            form_.kind = RowLayout::Completion;
            form_.prompt = stringOf(prompt, at("prompt"));
            form_.text = stringOf(completion, at("completion"));
            for (const char* key : {"tools", "system"}) {
                if (const RowJson* const value = memberOf(row_, key); value != nullptr && !saysNothing(*value)) {
                    badRow(at(key), "a completion of text has none; write the row as \"messages\"");
                }
            }
            noteOthers({"prompt", "completion"}, true);
            return;
        }
        if (!prompt.is_array() || !completion.is_array()) {
            badRow(at("completion"), "must be text where \"prompt\" is text, and a list of messages where it is one");
        }
        beginChat();
        addMessages(prompt, "prompt");
        for (std::optional<bool>& flag : form_.trained) {
            if (flag == true) {
                badRow(at("prompt"), "has a message with \"train\" or \"weight\", but only completions are trained; "
                                     "remove it from there");
            }
            flag = false;
        }
        addMessages(completion, "completion");
        noteOthers({"prompt", "completion", "tools", "system"}, true);
    }

    void readInstruction() {
        beginChat();
        if (const RowJson* const history = memberOf(row_, "history")) {
            for (std::size_t i = 0; i < listOf(*history, at("history")).size(); ++i) {
                const std::string where = at(fmt::format("history[{}]", i));
                const RowJson& pair = listOf((*history)[i], where);
                if (pair.size() != 2) {
                    badRow(where, "must be a question and its answer");
                }
                add({{"role", "user"}, {"content", stringOf(pair[0], where)}}, {}, where);
                add({{"role", "assistant"}, {"content", stringOf(pair[1], where)}}, {}, where);
            }
        }
        std::string question = stringOf(row_["instruction"], at("instruction"));
        const RowJson* const input = memberOf(row_, "input");
        if (input != nullptr && !saysNothing(*input)) {
            question += (question.empty() ? "" : "\n") + stringOf(*input, at("input"));
        }
        if (question.empty()) {
            badRow(at("instruction"), "is empty; remove the row");
        }
        add({{"role", "user"}, {"content", question}}, {}, place_);
        RowJson answer = {{"role", "assistant"}};
        if (const RowJson* const output = memberOf(row_, "output")) {
            answer["content"] = stringOf(*output, at("output"));
        }
        add(std::move(answer), {}, at("output"));
        noteOthers({"instruction", "input", "output", "history", "system", "tools"}, true);
    }

    void readConversation(const std::string& key) {
        beginChat();
        addMessages(row_[key], key);
        noteOthers({key, "tools", "system"}, true);
    }

    /// Tools and the system message that stand beside the messages.
    void beginChat() {
        form_.kind = RowLayout::Chat;
        if (const RowJson* const tools = memberOf(row_, "tools"); tools != nullptr && !saysNothing(*tools)) {
            // Tables of data have one type for a column, so that many write the list as text.
            const RowJson list =
                tools->is_string() ? base::parseOrderedJson(tools->get_ref<const std::string&>(), at("tools")) : *tools;
            form_.tools.assign(listOf(list, at("tools")).begin(), list.end());
        }
        if (const RowJson* const system = memberOf(row_, "system"); system != nullptr && !saysNothing(*system)) {
            add({{"role", "system"}, {"content", stringOf(*system, at("system"))}}, {}, at("system"));
            hasSystem_ = true;
        }
    }

    void addMessages(const RowJson& list, const std::string& key) {
        for (std::size_t i = 0; i < listOf(list, at(key)).size(); ++i) {
            const std::string where = at(fmt::format("{}[{}]", key, i));
            RowJson message;
            const std::optional<bool> trained = readRowMessage(list[i], where, key, notes_, message);
            if (hasSystem_ && message.value("role", RowJson()) == "system") {
                badRow(where, "is a system message beside the member \"system\"; keep one of them");
            }
            add(std::move(message), trained, where);
        }
        if (list.empty()) {
            badRow(at(key), "there is no message");
        }
    }

    void add(RowJson message, std::optional<bool> trained, const std::string& where) {
        const auto has = [&](const char* key) {
            const RowJson* const value = memberOf(message, key);
            return value != nullptr && !saysNothing(*value);
        };
        // An empty text is an answer: it says that there is nothing to say.
        const RowJson* const content = memberOf(message, "content");
        const bool empty = content == nullptr || (content->is_array() && content->empty());
        const RowJson role = message.value("role", RowJson());
        if (role != "assistant" && trained == true) {
            badRow(where,
                   "only answers of the assistant can be trained; remove \"train\" or \"weight\" from this message");
        }
        if (role == "assistant" && empty && !has("tool_calls") && !has("thinking") && !has("reasoning_content")) {
            notes_.withoutContent(place_);
            trained = false;
        }
        if ((role == "user" || role == "system" || role == "developer") && content == nullptr) {
            badRow(where, "has no content; write its text as \"content\", or remove it");
        }
        form_.messages.push_back(std::move(message));
        form_.trained.push_back(trained);
    }

    RowJson& row_;
    const std::string& place_;
    RowNotes& notes_;
    RowForm form_;
    bool hasSystem_ = false; ///< beside the messages
};

} // namespace

RowForm readRowLayout(nlohmann::ordered_json row, const std::string& place, RowNotes& notes) {
    return LayoutReader(row, place, notes).read();
}

} // namespace vitrine::engine
