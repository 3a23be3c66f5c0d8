// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/reward_command.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/rl/rewards/judge_lines.h"
#include "tests/engine/rl/rewards/attempts.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::engine {
namespace {

using test::attempt;
using test::takeAll;

/// Rewards the id.
constexpr const char* kGivesId = R"(while read -r l; do i=${l#*\"id\":}; echo "${i%%,*}"; done)";

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(RewardCommand, JudgesManyWithAnyNumberOfProcesses) {
    for (const std::int64_t processes : {1, 3, 8}) {
        RewardCommand command({.command = kGivesId, .processes = processes});
        EXPECT_TRUE(command.take(true).empty());
        for (std::int64_t id = 0; id < 200; ++id) {
            command.judge(attempt(id, "an answer\nof two \"lines\""));
        }
        EXPECT_EQ(command.waiting(), 200);
        const auto all = takeAll(command);
        ASSERT_EQ(all.size(), 200U);
        for (const auto& [id, judgement] : all) {
            EXPECT_EQ(judgement.reward, static_cast<double>(id)) << judgement.error;
            EXPECT_FALSE(judgement.reply);
        }
        EXPECT_EQ(command.counts().judged, 200);
        EXPECT_EQ(command.counts().crashes, 0);
        EXPECT_EQ(command.counts().badAnswers, 0);
    }
}

TEST(RewardCommand, JudgesWhileNobodyTakes) {
    RewardCommand command({.command = kGivesId, .processes = 2});
    for (std::int64_t id = 0; id < 20; ++id) {
        command.judge(attempt(id));
    }
    std::vector<Judgement> taken;
    EXPECT_TRUE(test::eventually([&] {
        for (Judgement& judgement : command.take(false)) {
            taken.push_back(std::move(judgement));
        }
        return taken.size() == 20;
    }));
    command.judge(attempt(77));
    EXPECT_EQ(takeAll(command).at(77).reward, 77.0) << "processes stay for later answers";
}

TEST(RewardCommand, AConversationGoesOn) {
    RewardCommand command({.command = R"(while read -r l; do case $l in *'"turn":0'*) echo '{"message": "go on"}';;
                                         *) echo '{"reward": 1}';; esac; done)"});
    command.judge(attempt(1));
    Attempt second = attempt(2);
    second.turn = 1;
    command.judge(second);
    const auto all = takeAll(command);
    EXPECT_EQ(all.at(1).reply, "go on");
    EXPECT_FALSE(all.at(1).reward);
    EXPECT_EQ(all.at(2).reward, 1.0);
    EXPECT_EQ(command.counts().judged, 2);
}

TEST(RewardCommand, LinesLongerThanAPipeArriveWhole) {
    RewardCommand command({.command = R"(while read -r l; do echo ${#l}; done)", .processes = 1});
    const Attempt large = attempt(1, std::string(200'000, 'a'));
    command.judge(large);
    EXPECT_EQ(takeAll(command).at(1).reward, static_cast<double>(judgeRequest(large).size()));
}

TEST(RewardCommand, ACrashCostsOneAnswer) {
    RewardCommand command(
        {.command =
             "n=0; while read -r l; do n=$((n+1)); if [ $n = 3 ]; then echo no luck >&2; exit 7; fi; echo 1; done",
         .processes = 1});
    for (std::int64_t id = 0; id < 9; ++id) {
        command.judge(attempt(id));
    }
    const auto all = takeAll(command);
    ASSERT_EQ(all.size(), 9U);
    for (const auto& [id, judgement] : all) {
        if (id % 3 == 2) {
            EXPECT_EQ(judgement.error, "reward_command: the program ended with code 7: no luck");
            EXPECT_FALSE(judgement.reward);
        } else {
            EXPECT_EQ(judgement.reward, 1.0) << judgement.error;
        }
    }
    EXPECT_EQ(command.counts().judged, 6);
    EXPECT_EQ(command.counts().crashes, 3);
}

/// A program that does one wrong thing, and what is said of it.
struct Wrong {
    const char* command;
    const char* error;
    std::int64_t RewardCommandCounts::* count;
};

TEST(RewardCommand, SaysWhatAProgramDidWrong) {
    constexpr auto kBad = &RewardCommandCounts::badAnswers;
    constexpr auto kCrash = &RewardCommandCounts::crashes;
    const std::vector<Wrong> all = {
        {"read -r l; echo nonsense; sleep 1000", "\"nonsense\" is no answer", kBad},
        {"read -r l; echo NaN; sleep 1000", "\"NaN\" is no answer", kBad},
        {"read -r l; echo; sleep 1000", "\"\" is no answer", kBad},
        {"read -r l; echo '{\"reward\": 1, \"id\": 99}'; sleep 1000", "to id 99 where 1 was asked", kBad},
        {"read -r l; printf '1\\n2\\n'; sleep 1000", "more than one line", kBad},
        {"read -r l; printf '1\\n2'; sleep 1000", "more than one line", kBad},
        {"yes 1", "more than one line", kBad},
        {"read -r l; awk 'BEGIN { for (i = 0; i < 300000; i++) printf \"xxxxxxxxxx\" }'; sleep 1000",
         "a line of more than 1.0 MiB", kBad},
        {"read -r l; awk 'BEGIN { for (i = 0; i < 150000; i++) printf \"xxxxxxxxxx\"; print 1 }'; sleep 1000",
         "a line of more than 1.0 MiB", kBad},
        {"read -r l; printf 0.5", "the program ended with code 0", kCrash},
        {"read -r l; kill -9 $$", "the program was ended by signal 9 (Killed)", kCrash},
        {"read -r l; exec 1>&-; sleep 1000", "closed its input or output", kCrash},
        {"read -r l; sleep 1000 & exit 3", "the program ended with code 3", kCrash},
        {"/no/such/program-of-vitrine", "ended with code 127: ", kCrash},
        {"if", "ended with code 2: ", kCrash},
        {"false", "reward_command: the program ended with code 1", kCrash},
    };
    for (const Wrong& wrong : all) {
        RewardCommand command({.command = wrong.command, .processes = 1});
        for (const std::int64_t id : {1, 2}) { // the second has a process of its own
            command.judge(attempt(id));
            const Judgement judgement = takeAll(command)[id];
            EXPECT_TRUE(has(judgement.error, id == 1 ? wrong.error : "reward_command: "))
                << wrong.command << ": " << judgement.error;
            EXPECT_EQ(judgement.error.rfind("reward_command: ", 0), 0U);
            EXPECT_FALSE(judgement.reward);
            EXPECT_FALSE(judgement.reply);
            EXPECT_EQ(command.counts().*wrong.count, id) << wrong.command;
        }
        EXPECT_EQ(command.counts().judged, 0);
    }
}

TEST(RewardCommand, AnAnswerBeforeTheWholeQuestionIsNone) {
    RewardCommand command({.command = "echo 1; sleep 1000", .processes = 1});
    command.judge(attempt(1, std::string(200'000, 'a')));
    EXPECT_EQ(takeAll(command)[1].error, "reward_command: the program answered before it had read the whole line");
}

TEST(RewardCommand, AProgramThatReadsNoMoreIsNoSignal) {
    RewardCommand command({.command = "exec 0<&-; sleep 1000", .processes = 1});
    command.judge(attempt(1, std::string(200'000, 'a')));
    EXPECT_EQ(takeAll(command)[1].error, "reward_command: the program closed its input or output");
}

TEST(RewardCommand, WhatNobodyAskedForEndsTheProcess) {
    const test::TempFolder folder;
    const std::string taken = folder.file("taken");
    RewardCommand command(
        {.command = "read -r l; echo 1; until [ -e " + taken + " ]; do sleep 0.01; done; echo 2; sleep 1000",
         .processes = 1});
    command.judge(attempt(1));
    EXPECT_EQ(takeAll(command)[1].reward, 1.0);
    std::ofstream(taken).flush();
    EXPECT_TRUE(test::eventually([&] {
        command.take(false);
        return command.counts().badAnswers == 1;
    }));
    std::filesystem::remove(taken);
    command.judge(attempt(2));
    EXPECT_EQ(takeAll(command)[2].reward, 1.0);
}

TEST(RewardCommand, AProgramThatAlwaysFailsCostsEachAnswerAndNoMore) {
    RewardCommand command({.command = "/no/such/program-of-vitrine", .processes = 4});
    for (std::int64_t id = 0; id < 12; ++id) {
        command.judge(attempt(id));
    }
    const auto all = takeAll(command);
    ASSERT_EQ(all.size(), 12U);
    for (const auto& [id, judgement] : all) {
        EXPECT_TRUE(has(judgement.error, "code 127") && has(judgement.error, "not found")) << judgement.error;
    }
    EXPECT_EQ(command.counts().crashes, 12) << "no process starts without an answer to judge";
}

TEST(RewardCommand, RefusesWhatCannotJudge) {
    const auto errorOf = [](const RewardCommandOptions& options) -> std::string {
        try {
            const RewardCommand command(options);
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return "none";
    };
    EXPECT_EQ(errorOf({.command = ""}), "reward_command: is empty; give the command line of a program that judges");
    EXPECT_TRUE(has(errorOf({.command = " \t"}), "is empty"));
    EXPECT_TRUE(has(errorOf({.command = std::string("a\0b", 3)}), "NUL"));
    EXPECT_TRUE(has(errorOf({.command = "cat", .processes = 0}), "0 processes"));
    EXPECT_TRUE(has(errorOf({.command = "cat", .processes = 5000}), "5000 processes"));
    EXPECT_TRUE(has(errorOf({.command = "cat", .timeout = std::chrono::milliseconds(0)}), "time"));
    EXPECT_TRUE(has(errorOf({.command = "cat", .timeout = std::chrono::milliseconds::max()}), "a day at most"));
    EXPECT_EQ(errorOf({.command = "cat"}), "none");
}

} // namespace
} // namespace vitrine::engine
