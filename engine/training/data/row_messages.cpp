// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/row_messages.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/strict_json.h"
#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

namespace {

/// Both kinds of keys of a message.
constexpr std::array<std::string_view, 23> kMessageLossKeys = {
    "loss",    "loss_weight",    "loss_scale", "loss_mask",    "mask",    "masked", "trainable", "training",
    "channel", "recipient",      "prefix",     "train_detail", "refusal", "tools",  "documents", "function_call",
    "images",  "step_loss_mask", "image",      "image_url",    "videos",  "audios", "audio"};
constexpr std::array<std::string_view, 7> kMessageKeys = {"role", "content",    "thinking",    "reasoning_content",
                                                          "name", "tool_calls", "tool_call_id"};

std::string_view roleOfSpeaker(std::string_view from) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kRoles = {
        {{"human", "user"},
         {"user", "user"},
         {"gpt", "assistant"},
         {"assistant", "assistant"},
         {"chatgpt", "assistant"},
         {"bing", "assistant"},
         {"bard", "assistant"},
         {"model", "assistant"},
         {"function_call", "assistant"},
         {"tool_call", "assistant"},
         {"system", "system"},
         {"developer", "developer"},
         {"tool", "tool"},
         {"tool_response", "tool"},
         {"observation", "tool"},
         {"function_response", "tool"}}};
    const auto* const found =
        std::find_if(kRoles.begin(), kRoles.end(), [&](const auto& r) { return r.first == from; });
    return found == kRoles.end() ? std::string_view{} : found->second;
}

/// What "weight" and "train" of a message say.
std::optional<bool> flagOf(const RowJson& message, const std::string& where) {
    const RowJson* const weight = memberOf(message, "weight");
    const RowJson* const train = memberOf(message, "train");
    if (weight != nullptr && (!weight->is_number() || (*weight != 0 && *weight != 1))) {
        badRow(where + ".weight", "must be 0 or 1; answers are trained or not, without weights between");
    }
    if (train != nullptr && !train->is_boolean()) {
        badRow(where + ".train", "must be true or false");
    }
    if (weight != nullptr && train != nullptr && (*weight == 1) != train->get<bool>()) {
        badRow(where + ".train", "says otherwise than \"weight\"; keep one of them");
    }
    return train != nullptr    ? std::optional(train->get<bool>())
           : weight != nullptr ? std::optional(*weight == 1)
                               : std::nullopt;
}

/// ShareGPT's call: {"name": ..., "arguments": ...} as text, or a list of them.
RowJson callsOf(const std::string& text, const std::string& where) {
    RowJson calls = base::parseOrderedJson(text, where);
    if (!calls.is_array()) {
        calls = RowJson::array({std::move(calls)});
    }
    RowJson out = RowJson::array();
    for (RowJson& call : calls) {
        if (!call.is_object() || memberOf(call, "name") == nullptr || memberOf(call, "arguments") == nullptr) {
            badRow(where, "must be a call {\"name\": ..., \"arguments\": ...}, or a list of calls");
        }
        out.push_back({{"type", "function"}, {"function", std::move(call)}});
    }
    return out;
}

RowJson fromShareGpt(const RowJson& entry, const std::string& where) {
    const std::string& from = stringOf(entry["from"], where + ".from");
    const std::string_view role = roleOfSpeaker(from);
    if (role.empty()) {
        badRow(where + ".from", fmt::format("{} is no speaker; use system, human, gpt, function_call or observation",
                                            quotedForMessage(from)));
    }
    if (memberOf(entry, "role") != nullptr || memberOf(entry, "content") != nullptr) {
        badRow(where, "has \"from\" and \"role\" or \"content\"; keep \"from\" and \"value\"");
    }
    RowJson message = {{"role", role}};
    if (const RowJson* const value = memberOf(entry, "value")) {
        if (from == "function_call" || from == "tool_call") {
            message["tool_calls"] = callsOf(stringOf(*value, where + ".value"), where + ".value");
        } else {
            message["content"] = *value;
        }
    }
    return message;
}

/// The keys that stay as they are.
void addKnownKeys(const RowJson& entry, const std::string& where, const std::string& list, bool shareGpt,
                  RowJson& message, RowNotes& notes) {
    for (const auto& [key, value] : entry.items()) {
        if (value.is_null() || key == "weight" || key == "train" || (shareGpt && (key == "from" || key == "value"))) {
            continue;
        }
        if (notes.isRead(key)) {
            message[key] = value;
        } else if (isAmong(kMessageLossKeys, key)) {
            if (!saysNothing(value)) {
                badRow(fmt::format("{}.{}", where, key), "would change what is trained, which is not supported; "
                                                         "remove it");
            }
        } else if (key == "reasoning" && memberOf(entry, "reasoning_content") == nullptr &&
                   memberOf(entry, "thinking") == nullptr) {
            message["reasoning_content"] = value;
        } else if (isAmong(kMessageKeys, key)) {
            message[key] = value;
        } else {
            notes.unused(fmt::format("{} of {}", quotedForMessage(key), list));
        }
    }
}

} // namespace

std::optional<bool> readRowMessage(const RowJson& entry, const std::string& where, const std::string& list,
                                   RowNotes& notes, RowJson& message) {
    if (!entry.is_object()) {
        badRow(where, fmt::format("must be an object, not {}", entry.type_name()));
    }
    const bool shareGpt = memberOf(entry, "from") != nullptr;
    message = shareGpt ? fromShareGpt(entry, where) : RowJson::object();
    const std::optional<bool> trained = flagOf(entry, where);
    addKnownKeys(entry, where, list, shareGpt, message, notes);
    return trained;
}

} // namespace vitrine::engine
