// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/file_name.h"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "sessions/session_file.h"
#include "tests/repetitions.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::sessions {
namespace {

using test::TempFolder;

TEST(FileName, ALogStaysWithTheFileThatHasTheName) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    test::writeAll(path + "-wal", "log");
    test::writeAll(path, "first");
    removeLogsOfGone(path);
    test::writeAll(folder.file("new"), "second");
    EXPECT_FALSE(takeName(folder.file("new"), path, false));
    EXPECT_EQ(test::readAll(path + "-wal"), "log");
    EXPECT_EQ(test::readAll(path), "first");
    EXPECT_EQ(test::readAll(folder.file("new")), "second");
    EXPECT_TRUE(takeName(folder.file("new"), path, true));
    EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
    EXPECT_EQ(test::readAll(path), "second");
}

TEST(FileName, ALogOfADeletedFileIsNotReadIntoANewOne) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    test::writeAll(path + "-wal", "log");
    test::writeAll(folder.file("new"), "new");
    EXPECT_TRUE(takeName(folder.file("new"), path, false));
    EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
    EXPECT_FALSE(std::filesystem::exists(folder.file("new")));
    std::filesystem::remove(path);
    test::writeAll(path + "-shm", "memory");
    removeLogsOfGone(path);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

/// Waits until `start` is closed, then writes a run into the session, which may not be there yet. True: it is saved.
bool writesARun(const std::string& path, int start) {
    char byte = 0;
    if (::read(start, &byte, 1) != 0) {
        return false;
    }
    const auto session = SessionFile::open(path, OpenMode::CreateOrOpen);
    const RunId run = session->createRun({});
    session->finishRun(run, RunStatus::Done, "{}", "");
    return session->place() == FilePlace::InPlace;
}

TEST(FileName, ProcessesThatStartTogetherShareANewSession) {
    const TempFolder folder(TempFolder::Place::Memory);
    constexpr std::size_t kWriters = 6;
    const int rounds = test::repetitions(40);
    for (int round = 0; round < rounds; ++round) {
        const std::string path = folder.file(std::to_string(round) + ".vitrine");
        std::array<int, 2> start{};
        ASSERT_EQ(::pipe(start.data()), 0);
        std::vector<pid_t> children;
        for (std::size_t i = 0; i < kWriters; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                ::close(start[1]);
                bool good = false;
                try {
                    good = writesARun(path, start[0]);
                } catch (const std::exception&) {
                }
                ::_exit(good ? 0 : 1);
            }
            children.push_back(child);
        }
        ::close(start[0]);
        ::close(start[1]);
        for (const pid_t child : children) {
            int status = 0;
            ::waitpid(child, &status, 0);
            EXPECT_EQ(status, 0) << "round " << round;
        }
        const std::vector<RunInfo> runs = SessionFile::open(path, OpenMode::ReadOnly)->runs();
        EXPECT_EQ(runs.size(), kWriters) << "round " << round;
        EXPECT_TRUE(std::ranges::all_of(runs, [](const RunInfo& run) { return run.status == RunStatus::Done; }));
    }
}

} // namespace
} // namespace vitrine::sessions
