// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rollout/rollout_group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/rl/policy/group_advantages.h"
#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

double trainedReward(const GroupAnswer& answer, const TrainedRowOptions& options) {
    return *answer.reward - (options.cut == CutAnswers::Penalise && answer.cut() ? options.penalty : 0);
}

/// Advantages of a group's answers by their place; empty where the group teaches nothing.
std::vector<std::optional<float>> advantagesOf(const RolloutGroup& group, const TrainedRowOptions& options) {
    std::vector<float> rewards;
    std::vector<std::size_t> judged;
    for (std::size_t place = 0; place < group.answers.size(); ++place) {
        if (group.answers[place].reward) {
            rewards.push_back(static_cast<float>(trainedReward(group.answers[place], options)));
            judged.push_back(place);
        }
    }
    if (rewards.size() < 2) {
        return {};
    }
    const bool equal = std::ranges::all_of(rewards, [&](float reward) { return reward == rewards.front(); });
    if (equal && !options.keepsEqualGroups) {
        return {};
    }
    const std::vector<std::int64_t> same(rewards.size(), 0);
    const std::vector<float> advantages = groupAdvantages(rewards, same);
    std::vector<std::optional<float>> out(group.answers.size());
    for (std::size_t i = 0; i < judged.size(); ++i) {
        out[judged[i]] = advantages[i];
    }
    return out;
}

struct TrainedRow {
    const RolloutGroup* group;
    const GroupAnswer* answer;
    float advantage;
};

/// The experts of all rows, where one has some.
GivenExperts expertsOf(const std::vector<TrainedRow>& rows, std::int64_t width) {
    GivenExperts out;
    for (const TrainedRow& row : rows) {
        const ExpertChoices& choices = row.answer->experts.choices;
        if (choices.rows() > 0) {
            out.layers = choices.layers;
            out.k = choices.k;
            break;
        }
    }
    if (out.empty()) {
        return out;
    }
    out.addNone(static_cast<std::int64_t>(rows.size()) * width);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const ReadExperts& read = rows[i].answer->experts;
        auto to = out.ids.begin() + static_cast<std::ptrdiff_t>(i * static_cast<std::size_t>(width) * out.width());
        for (std::int64_t token = 0; token < std::min(read.tokens(), width); ++token) {
            const bool known = !read.row(token).empty();
            for (std::int64_t layer = 0; layer < out.layers; ++layer) {
                for (std::int64_t place = 0; place < out.k; ++place, ++to) {
                    *to = known ? static_cast<std::uint16_t>(read.id(token, layer, place)) : GivenExperts::kNone;
                }
            }
        }
    }
    return out;
}

Rollouts rolloutsOf(const std::vector<TrainedRow>& rows) {
    Rollouts out;
    out.rows = static_cast<std::int64_t>(rows.size());
    for (const TrainedRow& row : rows) {
        out.width = std::max(out.width, static_cast<std::int64_t>(row.group->prompt.size() + row.answer->ids.size()));
    }
    const auto width = static_cast<std::size_t>(out.width);
    out.ids.resize(rows.size() * width);
    out.rollout.resize(rows.size() * width);
    if (std::ranges::any_of(rows, [](const TrainedRow& row) { return !row.answer->turns.empty(); })) {
        out.said.resize(rows.size() * width);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::vector<std::int32_t>& prompt = rows[i].group->prompt;
        const GroupAnswer& answer = *rows[i].answer;
        const auto begin = static_cast<std::ptrdiff_t>(i * width);
        const auto answerBegin = begin + static_cast<std::ptrdiff_t>(prompt.size());
        std::ranges::copy(prompt, out.ids.begin() + begin);
        std::ranges::copy(answer.ids, out.ids.begin() + answerBegin);
        std::ranges::copy(answer.logProbs, out.rollout.begin() + answerBegin);
        for (std::size_t token = 0; token < answer.ids.size() && !out.said.empty(); ++token) {
            out.said[i * width + prompt.size() + token] = answer.versions[token] == GroupAnswer::kNotSaid ? 0 : 1;
        }
        out.promptLengths.push_back(static_cast<std::int32_t>(prompt.size()));
        out.lengths.push_back(static_cast<std::int32_t>(prompt.size() + answer.ids.size()));
        out.advantages.push_back(rows[i].advantage);
        out.rewards.push_back(static_cast<float>(*answer.reward));
    }
    out.experts = expertsOf(rows, out.width);
    return out;
}

/// Whole numbers from `least` to `most`.
std::vector<std::int32_t> numbersOf(const JsonField& list, std::int64_t least, std::int64_t most) {
    std::vector<std::int32_t> out;
    out.reserve(list.arraySize());
    for (std::size_t i = 0; i < list.arraySize(); ++i) {
        const Json& value = list.value()[i];
        const bool known =
            value.is_number_integer() && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most;
        // The path of an element is made for a message only: there are many.
        out.push_back(
            static_cast<std::int32_t>(known ? value.get<std::int64_t>() : list.element(i).asInteger(least, most)));
    }
    return out;
}

std::vector<float> logProbsOf(const JsonField& list) {
    std::vector<float> out;
    out.reserve(list.arraySize());
    for (const Json& value : list.value()) {
        if (!value.is_number()) {
            list.bad("has what is no number");
        }
        out.push_back(static_cast<float>(value.get<double>()));
    }
    return out;
}

FinishReason finishOf(const JsonField& field) {
    const std::string& name = field.asString();
    for (const FinishReason reason :
         {FinishReason::Length, FinishReason::Context, FinishReason::StopToken, FinishReason::StopText}) {
        if (name == finishReasonName(reason)) {
            return reason;
        }
    }
    if (!name.empty()) { // as an answer that goes on has it
        field.bad("is no reason why an answer ends; use an earlier checkpoint");
    }
    return FinishReason::None;
}

GroupAnswer readAnswer(const JsonField& row, std::int64_t vocab) {
    GroupAnswer out;
    out.ids = numbersOf(row.at("ids"), 0, vocab - 1);
    out.logProbs = logProbsOf(row.at("logprobs"));
    out.versions = numbersOf(row.at("versions"), GroupAnswer::kNotSaid, std::numeric_limits<std::int32_t>::max());
    if (out.logProbs.size() != out.ids.size() || out.versions.size() != out.ids.size()) {
        row.bad("has not as many log-probabilities and versions as tokens");
    }
    out.finish = finishOf(row.at("finish"));
    if (const auto reward = row.find("reward")) {
        if (!reward->value().is_number()) {
            reward->bad("is no number");
        }
        out.reward = reward->value().get<double>();
    }
    out.error = row.text("error", "");
    if (const auto turns = row.find("turns")) {
        for (std::size_t i = 0; i < turns->arraySize(); ++i) {
            const JsonField turn = turns->element(i);
            out.turns.emplace_back(turn.at("role").asString(), turn.at("text").asString());
        }
    }
    if (const auto begin = row.find("turn_begin")) {
        out.turnBegin = begin->asInteger(0, static_cast<std::int64_t>(out.ids.size()));
    }
    return out;
}

} // namespace

std::int64_t GroupAnswer::saidTokens() const {
    return std::ranges::count_if(versions, [](std::int32_t version) { return version != kNotSaid; });
}

bool GroupAnswer::hasSeveralVersions() const {
    std::int32_t first = kNotSaid;
    for (const std::int32_t version : versions) {
        if (version != kNotSaid && first != kNotSaid && version != first) {
            return true;
        }
        first = first == kNotSaid ? version : first;
    }
    return false;
}

void GroupAnswer::goOn(const std::string& answer, const std::string& reply, const std::vector<std::int32_t>& tokens) {
    turns.emplace_back("assistant", answer);
    turns.emplace_back("user", reply);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    logProbs.resize(ids.size());
    versions.resize(ids.size(), kNotSaid);
    turnBegin = static_cast<std::int64_t>(ids.size());
    finish = FinishReason::None;
}

bool RolloutGroup::ended() const {
    return std::ranges::all_of(answers, &GroupAnswer::ended);
}

bool RolloutGroup::differs() const {
    std::optional<double> first;
    for (const GroupAnswer& answer : answers) {
        if (answer.reward && first && *answer.reward != *first) {
            return true;
        }
        first = first ? first : answer.reward;
    }
    return false;
}

std::optional<double> RolloutGroup::meanReward() const {
    double sum = 0;
    std::int64_t judged = 0;
    for (const GroupAnswer& answer : answers) {
        if (answer.reward) {
            sum += *answer.reward;
            ++judged;
        }
    }
    return judged == 0 ? std::nullopt : std::optional(sum / static_cast<double>(judged));
}

TrainedAnswers trainedAnswers(std::span<const RolloutGroup> groups, const TrainedRowOptions& options) {
    TrainedAnswers out;
    std::vector<TrainedRow> rows;
    for (std::size_t index = 0; index < groups.size(); ++index) {
        const RolloutGroup& group = groups[index];
        const std::vector<std::optional<float>> advantages = advantagesOf(group, options);
        out.leftOutGroups += advantages.empty() ? 1 : 0;
        for (std::size_t place = 0; place < advantages.size(); ++place) {
            const GroupAnswer& answer = group.answers[place];
            if (!advantages[place] || answer.ids.empty()) {
                continue;
            }
            if (options.cut == CutAnswers::Mask && answer.cut()) {
                ++out.maskedAnswers;
                continue;
            }
            rows.push_back({&group, &answer, *advantages[place]});
            out.places.emplace_back(index, place);
        }
    }
    out.rollouts = rolloutsOf(rows);
    return out;
}

Json groupsJson(std::span<const RolloutGroup> groups) {
    Json out = Json::array();
    for (const RolloutGroup& group : groups) {
        Json answers = Json::array();
        for (const GroupAnswer& answer : group.answers) {
            Json row = {{"ids", answer.ids},
                        {"logprobs", answer.logProbs},
                        {"versions", answer.versions},
                        {"finish", answer.ended() ? finishReasonName(answer.finish) : ""}};
            if (answer.reward) {
                row["reward"] = *answer.reward;
            }
            if (!answer.error.empty()) {
                row["error"] = answer.error;
            }
            if (!answer.turns.empty()) {
                Json& turns = row["turns"] = Json::array();
                for (const ChatMessage& turn : answer.turns) {
                    turns.push_back({{"role", turn.role()}, {"text", turn.text()}});
                }
                row["turn_begin"] = answer.turnBegin;
            }
            answers.push_back(std::move(row));
        }
        out.push_back({{"number", group.number}, {"prompt", group.prompt}, {"answers", std::move(answers)}});
    }
    return out;
}

std::vector<RolloutGroup> readGroups(const Json& json, const ProblemSource& source, std::int64_t vocab,
                                     const std::string& file) {
    const JsonField list(json, file, "groups");
    std::vector<RolloutGroup> out(list.arraySize());
    for (std::size_t i = 0; i < out.size(); ++i) {
        const JsonField row = list.element(i);
        RolloutGroup& group = out[i];
        group.number = row.at("number").asInteger(0, kMostProblems);
        group.problem = std::make_shared<const Problem>(source.training(group.number));
        group.prompt = numbersOf(row.at("prompt"), 0, vocab - 1);
        if (group.prompt.empty()) {
            row.at("prompt").bad("has no tokens");
        }
        const JsonField answers = row.at("answers");
        for (std::size_t place = 0; place < answers.arraySize(); ++place) {
            group.answers.push_back(readAnswer(answers.element(place), vocab));
        }
    }
    return out;
}

} // namespace vitrine::engine
