// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/owner.h"

#include <array>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sessions/session_file.h"
#include "sessions/sqlite/database.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::sessions {
namespace {

constexpr std::int64_t kDay = 24LL * 3600 * 1000;

TEST(Owner, ALateHeartbeatOfALivingProcessIsNoDeath) {
    const Owner self = thisProcess();
    EXPECT_FALSE(ownerIsGone(self, 0, kDay));
}

TEST(Owner, AReusedProcessIdIsNotTheOwner) {
    Owner other = thisProcess();
    other.start -= 1;
    EXPECT_TRUE(ownerIsGone(other, kDay, kDay));
}

TEST(Owner, ADeadProcessIsGoneEvenBeforeItIsCollected) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char byte = 0;
        // Lives until the parent closes its end.
        ::_exit(::read(pipe[0], &byte, 1) == 0 ? 0 : 1);
    }
    Owner owner = thisProcess();
    owner.pid = child;
    owner.start = -2;
    EXPECT_TRUE(ownerIsGone(owner, kDay, kDay)) << "wrong start time";
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    owner.start = -1;
    EXPECT_TRUE(ownerIsGone(owner, kDay, kDay));
    ::waitpid(child, nullptr, 0);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST(Owner, AnotherMachineIsJudgedByItsHeartbeat) {
    Owner other = thisProcess();
    other.machine = "another boot pid:[1]";
    EXPECT_FALSE(ownerIsGone(other, kDay - 10'000, kDay));
    EXPECT_TRUE(ownerIsGone(other, kDay - 120'000, kDay));
}

TEST(Owner, ARunOfADeadProcessIsInterrupted) {
    const test::TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    const pid_t child = ::fork();
    if (child == 0) {
        auto session = SessionFile::open(path, OpenMode::CreateOrOpen);
        RunInfo info;
        info.name = "child";
        session->createRun(info);
        ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    auto reader = SessionFile::open(path, OpenMode::ReadOnly);
    ASSERT_EQ(reader->runs().size(), 1u);
    EXPECT_EQ(reader->runs()[0].status, RunStatus::Interrupted);
    reader.reset();
    auto writer = SessionFile::open(path, OpenMode::ReadWrite);
    EXPECT_EQ(writer->runs()[0].status, RunStatus::Interrupted);
    EXPECT_GT(writer->runs()[0].endedMs, 0);
    RunInfo info;
    info.name = "next";
    const RunId next = writer->createRun(info);
    EXPECT_EQ(SessionFile::open(path, OpenMode::ReadOnly)->run(next).status, RunStatus::Running);
}

TEST(Owner, AWriterThatDiedInTheMiddleOfAChangeIsRolledBack) {
    const test::TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    SessionFile::open(path, OpenMode::CreateOrOpen);
    const pid_t child = ::fork();
    if (child == 0) {
        // Leaves a journal and half-written pages, as a death while entering or leaving write-ahead logging may.
        const Database database(path, Database::Access::ReadWrite);
        database.execute("PRAGMA cache_size = 1; BEGIN");
        for (int i = 0; i < 2000; ++i) {
            database.execute("INSERT INTO runs SELECT NULL, 'x', '', '', '', '', '', 'done', 0, 0, 0, '', 0, 0, 0");
        }
        ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    ASSERT_GT(std::filesystem::file_size(path + "-journal"), 0u);
    EXPECT_TRUE(SessionFile::open(path, OpenMode::ReadOnly)->runs().empty());
    EXPECT_FALSE(std::filesystem::exists(path + "-journal"));
}

} // namespace
} // namespace vitrine::sessions
