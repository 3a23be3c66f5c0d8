// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a judging command leaves behind and how much it may take: processes, descriptors, memory, time, the log.

#include "engine/rl/rewards/judge_process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/log.h"
#include "engine/rl/rewards/reward_command.h"
#include "tests/engine/rl/rewards/attempts.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::engine {
namespace {

using test::attempt;
using test::takeAll;

std::ptrdiff_t openDescriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

/// The numbers that programs have written to a file, a line each.
std::vector<pid_t> pidsIn(const std::string& path) {
    std::ifstream file(path);
    return {std::istream_iterator<pid_t>(file), {}};
}

/// Gone, or a process that only its parent, which is not this program, has not waited for.
bool isEnded(pid_t pid) {
    if (::kill(pid, 0) != 0 && errno == ESRCH) {
        return true;
    }
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    const std::string text(std::istreambuf_iterator<char>(stat), {});
    return text.empty() || text.find(") Z ") != std::string::npos;
}

bool hasChildren() {
    return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
}

TEST(JudgeProcess, DropEndsAllThatWork) {
    const test::TempFolder folder;
    const std::string file = folder.file("pids");
    RewardCommand command({.command = "while read -r l; do case $l in *hang*) echo $$ >> " + file +
                                      "; sleep 1000 & echo $! >> " + file + "; wait;; *) echo 1;; esac; done",
                           .processes = 3});
    for (std::int64_t id = 0; id < 6; ++id) {
        command.judge(attempt(id, "hang"));
    }
    ASSERT_TRUE(test::eventually([&] { return pidsIn(file).size() == 6; }));
    command.drop();
    EXPECT_EQ(command.waiting(), 0);
    EXPECT_TRUE(command.take(false).empty());
    for (const pid_t pid : pidsIn(file)) {
        EXPECT_TRUE(test::eventually([&] { return isEnded(pid); })) << pid;
    }
    EXPECT_TRUE(test::eventually([] { return !hasChildren(); }));
    command.judge(attempt(3, "quick"));
    const auto all = takeAll(command);
    ASSERT_EQ(all.size(), 1U) << "nothing comes of what was dropped";
    EXPECT_EQ(all.at(3).reward, 1.0);
    EXPECT_EQ(pidsIn(file).size(), 6U) << "what waited was dropped too";
}

TEST(JudgeProcess, NothingIsLeftOfACommand) {
    const std::ptrdiff_t before = openDescriptors();
    {
        const RewardCommand never({.command = "sleep 1000"});
    }
    {
        RewardCommand command({.command = "sleep 1000", .processes = 8});
        for (std::int64_t id = 0; id < 20; ++id) {
            command.judge(attempt(id));
        }
    }
    EXPECT_FALSE(hasChildren());
    {
        RewardCommand command({.command = "n=0; while read -r l; do n=$((n+1)); [ $n = 50 ] && exit 1; echo 1; done"});
        for (std::int64_t id = 0; id < 500; ++id) {
            command.judge(attempt(id));
        }
        EXPECT_EQ(takeAll(command).size(), 500U);
        EXPECT_GE(command.counts().crashes, 5);
        EXPECT_EQ(command.counts().crashes + command.counts().judged, 500);
        EXPECT_LE(openDescriptors(), before + 4 + 4 * 3) << "a wake, a life line, and pipes to four processes";
        command.drop();
        EXPECT_TRUE(test::eventually([&] { return openDescriptors() == before + 4; }));
    }
    EXPECT_EQ(openDescriptors(), before);
    EXPECT_FALSE(hasChildren());
}

TEST(JudgeProcess, AJudgeThatHangsIsEndedWithItsChildren) {
    const test::TempFolder folder;
    const std::string file = folder.file("pids");
    RewardCommand command(
        {.command = "read -r l; echo $$ >> " + file + "; sleep 1000 & echo $! >> " + file + "; cat > /dev/null",
         .processes = 1,
         .timeout = std::chrono::milliseconds(300)});
    command.judge(attempt(1));
    command.judge(attempt(2));
    const auto all = takeAll(command);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all.at(1).error, "reward_command: no answer within 0.3 s, the process was ended");
    EXPECT_EQ(command.counts().timeouts, 2);
    for (const pid_t pid : pidsIn(file)) {
        EXPECT_TRUE(test::eventually([&] { return isEnded(pid); })) << pid;
    }
}

TEST(JudgeProcess, MemoryOfItsChildrenCounts) {
    // The program that takes it is a child of the shell, and keeps it.
    RewardCommand command({.command = "read -r l; awk 'BEGIN { x = \"0123456789abcdef\"; "
                                      "while (length(x) < 200000000) x = x x; system(\"sleep 1000\") }'; echo 1",
                           .processes = 1,
                           .timeout = std::chrono::minutes(2),
                           .memoryBytes = std::uint64_t{64} << 20});
    command.judge(attempt(1));
    const auto all = takeAll(command);
    ASSERT_EQ(all.size(), 1U);
    const std::string& error = all.at(1).error;
    EXPECT_EQ(error.rfind("reward_command: the process took ", 0), 0U) << error;
    EXPECT_NE(error.find("where 64.0 MiB are allowed, and was ended"), std::string::npos) << error;
    EXPECT_EQ(command.counts().overMemory, 1);
}

class JudgeErrors : public testing::Test {
protected:
    void SetUp() override {
        base::setLogLevel(base::LogLevel::Error);
        base::setLogSink([this](base::LogLevel, std::string_view text) {
            const std::lock_guard lock(mutex_);
            lines_.emplace_back(text);
        });
    }
    void TearDown() override {
        base::setLogSink({});
        base::setLogLevel(base::LogLevel::Warning);
    }
    std::vector<std::string> lines() {
        const std::lock_guard lock(mutex_);
        return lines_;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

TEST_F(JudgeErrors, AFloodOfThemStopsNothingAndIsCut) {
    RewardCommand command({.command =
                               "while read -r l; do awk 'BEGIN { for (i = 0; i < 100000; i++) print \"noise \" i }'"
                               " >&2; echo 1; done",
                           .processes = 1});
    command.judge(attempt(1));
    command.judge(attempt(2));
    const auto all = takeAll(command);
    EXPECT_EQ(all.at(1).reward, 1.0) << all.at(1).error;
    EXPECT_EQ(all.at(2).reward, 1.0) << all.at(2).error;
    const std::vector<std::string> logged = lines();
    ASSERT_EQ(logged.size(), 21U);
    EXPECT_EQ(logged[0], "reward_command: noise 0");
    EXPECT_EQ(logged[19], "reward_command: noise 19");
    EXPECT_EQ(logged[20], "reward_command: more lines of this process's standard error are left out");
}

TEST_F(JudgeErrors, LinesAreMadeFitForTheLog) {
    RewardCommand command({.command = R"(read -r l; printf 'a\tb\377\n\n' >&2; awk 'BEGIN { for (i = 0; i < 100000; i++)
                                         printf "long" }' >&2; exit 1)",
                           .processes = 1});
    command.judge(attempt(1));
    const std::string error = takeAll(command)[1].error;
    EXPECT_NE(error.find("longlong"), std::string::npos);
    EXPECT_LT(error.size(), 400U);
    const std::vector<std::string> logged = lines();
    ASSERT_EQ(logged.size(), 2U);
    EXPECT_EQ(logged[0], "reward_command: a b\xef\xbf\xbd");
    EXPECT_LT(logged[1].size(), 400U);
    EXPECT_TRUE(logged[1].ends_with("long...")) << logged[1];
}

} // namespace
} // namespace vitrine::engine
