// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/problem_row.h"

#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"
#include "base/strict_json.h"
#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

namespace {

using OrderedRow = nlohmann::ordered_json;

constexpr std::size_t kMostValuesOfAProblem = std::size_t{1} << 20; ///< of JSON; each takes many bytes
constexpr std::array<const char*, 5> kPromptFields = {"prompt", "messages", "question", "problem", "tokens"};
constexpr std::array<const char*, 3> kAnswerFields = {"answer", "solution", "target"};

struct AnswerField {
    const char* name;
    const nlohmann::json* value; ///< null: the row has none
};

AnswerField answerField(const nlohmann::json& facts) {
    for (const char* const name : kAnswerFields) {
        if (const auto found = facts.find(name); found != facts.end() && !found->is_null()) {
            return {name, &*found};
        }
    }
    if (const auto model = facts.find("reward_model"); model != facts.end() && model->is_object()) {
        if (const auto found = model->find("ground_truth"); found != model->end() && !found->is_null()) {
            return {"reward_model.ground_truth", &*found};
        }
    }
    return {kAnswerFields.front(), nullptr};
}

class ProblemMaker {
public:
    ProblemMaker(const std::string& place, const ProblemRowOptions& options) : place_(place), options_(options) {}

    Problem make(const OrderedRow& row) {
        if (!row.is_object()) {
            throw base::BadInput(
                fmt::format("{}: must be an object such as {{\"prompt\": \"...\"}}, not {}", place_, row.type_name()));
        }
        out_.name = place_;
        for (const char* const field : kPromptFields) {
            if (const auto found = row.find(field); found != row.end() && !found->is_null()) {
                readPrompt(field, *found);
                out_.facts = std::make_shared<const nlohmann::json>(row);
                checkAnswer(*out_.facts);
                return std::move(out_); // a member is not moved by itself
            }
        }
        bad("prompt", "is missing; give \"prompt\", \"messages\", \"question\", \"problem\" or \"tokens\"");
    }

private:
    [[noreturn]] void bad(std::string_view field, std::string_view what) const {
        throw base::BadInput(fmt::format("{}: {}: {}", place_, field, what));
    }

    void readPrompt(std::string_view field, const OrderedRow& value) {
        if (field == "tokens") {
            return readIds(value);
        }
        if (field == "messages" || (field == "prompt" && value.is_array())) {
            return readMessages(field, value);
        }
        if (!value.is_string()) {
            bad(field, fmt::format("must be text{}, not {}", field == "prompt" ? " or a list of messages" : "",
                                   value.type_name()));
        }
        const auto& text = value.get_ref<const std::string&>();
        if (text.empty()) {
            bad(field, "is empty; remove the row");
        }
        if (options_.raw) {
            out_.text = text;
        } else {
            out_.messages.emplace_back("user", text);
        }
    }

    void readMessages(std::string_view field, const OrderedRow& value) {
        out_.messages = readChatMessages(OrderedRow{{"messages", value}}, place_);
        if (out_.messages.back().isAnswer()) {
            bad(field, "ends with an answer of the assistant's; leave it out, so that the model gives it");
        }
    }

    void readIds(const OrderedRow& value) {
        if (!value.is_array() || value.empty()) {
            bad("tokens", value.is_array() ? "is empty; remove the row"
                                           : fmt::format("must be a list of ids, not {}", value.type_name()));
        }
        const std::int64_t bound =
            options_.vocab > 0 ? options_.vocab : std::int64_t{std::numeric_limits<std::int32_t>::max()};
        for (std::size_t i = 0; i < value.size(); ++i) {
            const OrderedRow& id = value[i];
            if (!id.is_number_integer()) {
                bad(fmt::format("tokens[{}]", i), fmt::format("must be an id, not {}", quotedForMessage(id.dump())));
            }
            const bool tooLarge =
                id.is_number_unsigned() && id.get<std::uint64_t>() >= static_cast<std::uint64_t>(bound);
            if (tooLarge || id.get<std::int64_t>() < 0) {
                bad(fmt::format("tokens[{}]", i), fmt::format("id {} is not from 0 to {}", id.dump(), bound - 1));
            }
            out_.tokens.push_back(static_cast<std::int32_t>(id.get<std::int64_t>()));
        }
    }

    void checkAnswer(const nlohmann::json& facts) const {
        if (options_.checker == nullptr) {
            return;
        }
        const AnswerField answer = answerField(facts);
        if (answer.value == nullptr) {
            bad(answer.name, fmt::format("is missing, and the checker {} needs it; add it, or judge otherwise",
                                         options_.checker->name));
        }
        try {
            options_.checker->requireAnswer(*answer.value);
        } catch (const base::BadInput& error) {
            constexpr std::string_view kBegin = "answer: "; // the checker knows no other name
            const std::string& what = error.message();
            bad(answer.name, what.starts_with(kBegin) ? what.substr(kBegin.size()) : what);
        }
    }

    const std::string& place_;
    const ProblemRowOptions& options_;
    Problem out_;
};

} // namespace

Problem problemOfRow(std::string_view row, const std::string& path, std::int64_t line, const std::string& place,
                     const ProblemRowOptions& options) {
    base::JsonLimits limits;
    limits.maxValues = kMostValuesOfAProblem;
    limits.firstLine = line;
    return ProblemMaker(place, options).make(base::parseOrderedJson(row, path, limits));
}

const nlohmann::json* expectedOf(const nlohmann::json& facts) {
    return answerField(facts).value;
}

std::string promptKey(const Problem& problem) {
    base::Sha256 sha;
    const auto add = [&sha](std::string_view text) {
        sha.add(fmt::format("{}:", text.size())); // so that no two lists of texts are one
        sha.add(text);
    };
    add(problem.text);
    for (const std::int32_t token : problem.tokens) {
        sha.add(fmt::format("{} ", token));
    }
    for (const ChatMessage& message : problem.messages) {
        add(message.role());
        add(message.text());
    }
    const auto digest = sha.digest();
    return {digest.begin(), digest.end()};
}

} // namespace vitrine::engine
