// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/judge_lines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/quoted_text.h"
#include "base/strict_json.h"

namespace vitrine::engine {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr base::JsonLimits kReplyLimits{.maxBytes = kLongestReply, .maxDepth = 16, .maxValues = 4096};

/// The text of the last message of the user's, or of a prompt without messages.
std::string promptOf(const Attempt& attempt) {
    const auto last = std::find_if(attempt.messages.rbegin(), attempt.messages.rend(),
                                   [](const ChatMessage& message) { return message.role() == "user"; });
    if (last != attempt.messages.rend()) {
        return last->text();
    }
    return attempt.problem == nullptr ? std::string() : attempt.problem->text;
}

/// What the line says; nothing of reward and reply where it is no answer.
Judgement meaningOf(const json& value) {
    Judgement judgement;
    if (value.is_number()) {
        judgement.reward = value.get<double>();
    } else if (value.is_object()) {
        int answers = 0;
        for (const char* name : {"reward", "score"}) {
            if (const auto member = value.find(name); member != value.end()) {
                ++answers;
                if (member->is_number()) {
                    judgement.reward = member->get<double>();
                }
            }
        }
        if (const auto member = value.find("message"); member != value.end()) {
            ++answers;
            if (member->is_string()) {
                judgement.reply = member->get<std::string>();
            }
        }
        if (answers != 1) {
            return {};
        }
    }
    if (judgement.reward && !std::isfinite(*judgement.reward)) {
        return {};
    }
    return judgement;
}

} // namespace

std::string judgeRequest(const Attempt& attempt) {
    ordered_json messages = ordered_json::array();
    for (const ChatMessage& message : attempt.messages) {
        messages.push_back(message.members());
    }
    const bool hasRow = attempt.problem != nullptr && attempt.problem->facts != nullptr;
    ordered_json line;
    line["id"] = attempt.id;
    line["prompt"] = promptOf(attempt);
    line["messages"] = std::move(messages);
    line["answer"] = attempt.answer;
    line["cut"] = attempt.cut;
    line["turn"] = attempt.turn;
    line["row"] = hasRow ? ordered_json(*attempt.problem->facts) : ordered_json::object();
    line["evaluation"] = attempt.isEvaluation;
    return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Judgement readJudgeReply(std::string_view line, std::int64_t id) {
    Judgement judgement;
    std::string wrongId;
    try {
        const json value = base::parseStrictJson(line, "reply", kReplyLimits);
        judgement = meaningOf(value);
        if (value.is_object() && value.contains("id") && value["id"] != id) {
            wrongId = value["id"].dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 80);
        }
    } catch (const base::BadInput&) {
        judgement = {}; // it is no JSON
    }
    judgement.id = id;
    if (!judgement.reward && !judgement.reply) {
        judgement.error = fmt::format("reward_command: {} is no answer; a finite number is one, or "
                                      "{{\"reward\": number}}, or {{\"message\": text}}",
                                      base::quotedText(line));
    } else if (!wrongId.empty()) {
        judgement = {.id = id,
                     .error =
                         fmt::format("reward_command: the program answered to id {} where {} was asked", wrongId, id)};
    }
    return judgement;
}

} // namespace vitrine::engine
