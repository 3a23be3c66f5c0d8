// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rollout/rollout_group.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "engine/rl/policy/group_advantages.h"

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

[[noreturn]] void badGroups(const std::string& file, const std::string& what) {
    throw base::BadInput(fmt::format("{}: groups: {}", file, what));
}

GroupAnswer readAnswer(const Json& row, std::int64_t vocab, const std::string& file) {
    GroupAnswer out;
    out.ids = row.at("ids").get<std::vector<std::int32_t>>();
    out.logProbs = row.at("logprobs").get<std::vector<float>>();
    out.versions = row.at("versions").get<std::vector<std::int32_t>>();
    if (out.logProbs.size() != out.ids.size() || out.versions.size() != out.ids.size()) {
        badGroups(file, "an answer has not as many log-probabilities and versions as tokens");
    }
    if (std::ranges::any_of(out.ids, [vocab](std::int32_t id) { return id < 0 || id >= vocab; })) {
        badGroups(file, "an id is outside the vocabulary");
    }
    const std::string finish = row.at("finish").get<std::string>();
    for (const FinishReason reason :
         {FinishReason::Length, FinishReason::Context, FinishReason::StopToken, FinishReason::StopText}) {
        out.finish = finish == finishReasonName(reason) ? reason : out.finish;
    }
    if (row.contains("reward")) {
        out.reward = row.at("reward").get<double>();
    }
    out.error = row.value("error", std::string());
    for (const Json& turn : row.value("turns", Json::array())) {
        out.turns.emplace_back(turn.at("role").get<std::string>(), turn.at("text").get<std::string>());
    }
    out.turnBegin = row.value("turn_begin", std::int64_t{0});
    if (out.turnBegin < 0 || out.turnBegin > static_cast<std::int64_t>(out.ids.size())) {
        badGroups(file, "turn_begin is not inside the answer");
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
    std::vector<RolloutGroup> out;
    try {
        for (const Json& row : json) {
            RolloutGroup& group = out.emplace_back();
            group.number = row.at("number").get<std::int64_t>();
            if (group.number < 0) {
                badGroups(file, "a number of a problem is negative");
            }
            group.problem = std::make_shared<const Problem>(source.training(group.number));
            group.prompt = row.at("prompt").get<std::vector<std::int32_t>>();
            for (const Json& answer : row.at("answers")) {
                group.answers.push_back(readAnswer(answer, vocab, file));
            }
        }
    } catch (const Json::exception& error) {
        badGroups(file, error.what());
    }
    return out;
}

} // namespace vitrine::engine
