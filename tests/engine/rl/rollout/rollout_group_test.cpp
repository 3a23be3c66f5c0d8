// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rollout/rollout_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "engine/rl/problems/task.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr std::int64_t kVocab = 64;

/// A group with an answer that has ended and one that goes on after a reply.
Json oneGroup() {
    const Json ended = {
        {"ids", {3, 4}}, {"logprobs", {-0.5, -1.25}}, {"versions", {0, 1}}, {"finish", "length"}, {"reward", 0.75}};
    const Json turns = {{{"role", "assistant"}, {"text", "5"}}, {{"role", "user"}, {"text", "No."}}};
    const Json goesOn = {{"ids", {5, 6}},         {"logprobs", {-0.5, 0.0}}, {"versions", {0, -1}}, {"finish", ""},
                         {"error", "not judged"}, {"turns", turns},          {"turn_begin", 2}};
    return Json::array({{{"number", 7}, {"prompt", {1, 2}}, {"answers", {ended, goesOn}}}});
}

std::vector<RolloutGroup> groupsOf(const Json& json) {
    return readGroups(json, *taskProblems(*findTask("sums"), 1, 2), kVocab, "F");
}

std::string groupsError(const Json& json) {
    try {
        groupsOf(json);
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return {};
}

TEST(RolloutGroupJson, IsTheSameGroupAgain) {
    const std::vector<RolloutGroup> groups = groupsOf(oneGroup());
    EXPECT_EQ(groupsJson(groups), oneGroup());
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].problem->name, taskProblems(*findTask("sums"), 1, 2)->training(7).name);
    ASSERT_EQ(groups[0].answers.size(), 2U);
    EXPECT_EQ(groups[0].answers[0].finish, FinishReason::Length);
    EXPECT_FALSE(groups[0].answers[1].ended());
    EXPECT_EQ(groups[0].answers[1].turns.size(), 2U);
    EXPECT_TRUE(groupsOf(Json::array()).empty());
}

TEST(RolloutGroupJson, WhatNoCheckpointHasIsRefused) {
    const std::pair<const char*, Json> faults[] = {
        {"/0/number", -1},
        {"/0/number", std::int64_t{1} << 62},
        {"/0/number", "7"},
        {"/0/prompt", Json::array()},
        {"/0/prompt/1", kVocab},
        {"/0/prompt/1", -1},
        {"/0/prompt/1", 1e300},
        {"/0/prompt/1", (std::int64_t{1} << 32) + 1},
        {"/0/answers", "none"},
        {"/0/answers/0", 5},
        {"/0/answers/0/ids/1", kVocab},
        {"/0/answers/0/ids", {3}},
        {"/0/answers/0/logprobs/0", "x"},
        {"/0/answers/0/versions/0", -2},
        {"/0/answers/0/finish", 1},
        {"/0/answers/0/finish", "soon"},
        {"/0/answers/1/finish", "unfinished"},
        {"/0/answers/0/reward", "1"},
        {"/0/answers/1/error", 4},
        {"/0/answers/1/turns/0", "x"},
        {"/0/answers/1/turns/0/role", 3},
        {"/0/answers/1/turn_begin", 3},
        {"/0/answers/1/turn_begin", -1},
    };
    for (const auto& [place, value] : faults) {
        Json json = oneGroup();
        json[Json::json_pointer(place)] = value;
        EXPECT_THAT(groupsError(json), HasSubstr("F: groups[0]")) << place << " " << value;
    }
    for (const char* place : {"/0/number", "/0/prompt", "/0/answers/0/ids", "/0/answers/0/finish"}) {
        Json json = oneGroup();
        const Json::json_pointer pointer(place);
        json[pointer.parent_pointer()].erase(pointer.back());
        EXPECT_THAT(groupsError(json), HasSubstr("is missing")) << place;
    }
    EXPECT_THAT(groupsError("x"), HasSubstr("F: groups: "));
}

} // namespace
} // namespace vitrine::engine
