// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "base/error.h"
#include "sessions/session_file.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::sessions {
namespace {

using test::TempFolder;
using test::writeAll;
using testing::HasSubstr;

RunInfo named(const std::string& name) {
    RunInfo info;
    info.name = name;
    info.workload = "generate";
    info.specJson = "{}";
    info.environmentJson = "{}";
    return info;
}

std::unique_ptr<SessionFile> sessionWithRun(const std::string& path) {
    auto session = SessionFile::open(path, OpenMode::CreateOrOpen);
    const RunId run = session->createRun(named("first"));
    session->finishRun(run, RunStatus::Done, "{}", "");
    return session;
}

std::string copyError(const SessionFile& session, const std::string& path) {
    try {
        session.saveCopy(path, false);
    } catch (const base::Error& error) {
        return error.message();
    }
    return "no error";
}

TEST(SessionCopy, SeesThatTheFileIsGoneOrReplaced) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    const auto session = sessionWithRun(path);
    EXPECT_EQ(session->place(), FilePlace::InPlace);
    EXPECT_EQ(session->movedTo(), "");
    std::filesystem::rename(path, folder.file("b.vitrine"));
    EXPECT_EQ(session->place(), FilePlace::Gone);
    EXPECT_EQ(session->movedTo(), std::filesystem::canonical(folder.file("b.vitrine")));
    const auto other = sessionWithRun(folder.file("c.vitrine"));
    std::filesystem::rename(folder.file("c.vitrine"), path);
    EXPECT_EQ(session->place(), FilePlace::Replaced);
    EXPECT_EQ(other->place(), FilePlace::Gone);
}

TEST(SessionCopy, HoldsWhatADeletedFileHeldAndGot) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    const auto session = sessionWithRun(path);
    std::filesystem::remove(path);
    EXPECT_EQ(session->movedTo(), "");
    session->setNote(1, "typed after the deletion");
    session->saveCopy(folder.file("copy.vitrine"), false);
    const auto copy = SessionFile::open(folder.file("copy.vitrine"), OpenMode::ReadWrite);
    EXPECT_EQ(copy->run(1).note, "typed after the deletion");
    EXPECT_EQ(copy->run(1).name, "first");
}

TEST(SessionCopy, TakesThePathOfADeletedSessionAndKeepsIt) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    {
        const auto session = sessionWithRun(path);
        std::filesystem::remove(path);
        session->setNote(1, "kept");
        session->saveCopy(path, false);
        EXPECT_EQ(session->place(), FilePlace::Replaced);
        session->setNote(1, "too late");
    }
    EXPECT_EQ(SessionFile::open(path, OpenMode::ReadWrite)->run(1).note, "kept");
}

TEST(SessionCopy, LeavesAMovedFileWhole) {
    const TempFolder folder;
    {
        const auto session = sessionWithRun(folder.file("a.vitrine"));
        std::filesystem::rename(folder.file("a.vitrine"), folder.file("b.vitrine"));
        session->setNote(1, "after the move");
    }
    EXPECT_EQ(SessionFile::open(folder.file("b.vitrine"), OpenMode::ReadWrite)->run(1).note, "after the move");
    EXPECT_FALSE(std::filesystem::exists(folder.file("a.vitrine-wal"))) << "it would be read into a new a.vitrine";
}

TEST(SessionCopy, RefusesItselfForeignFilesAndOtherSessions) {
    const TempFolder folder;
    const auto session = sessionWithRun(folder.file("a.vitrine"));
    EXPECT_THAT(copyError(*session, folder.file("a.vitrine")), HasSubstr("is the session itself"));
    writeAll(folder.file("notes.txt"), "mine");
    EXPECT_THAT(copyError(*session, folder.file("notes.txt")), HasSubstr("is no session and is not overwritten"));
    EXPECT_EQ(test::readAll(folder.file("notes.txt")), "mine");
    SessionFile::open(folder.file("b.vitrine"), OpenMode::CreateOrOpen);
    EXPECT_THAT(copyError(*session, folder.file("b.vitrine")), HasSubstr("there is a session of this name"));
    session->saveCopy(folder.file("b.vitrine"), true);
    EXPECT_EQ(SessionFile::open(folder.file("b.vitrine"), OpenMode::ReadOnly)->runs().size(), 1U);
    EXPECT_THAT(copyError(*session, folder.file("no folder/c.vitrine")), HasSubstr("the copy was not written"));
}

TEST(SessionCopy, TakesEditsThatWaitInMemory) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    sessionWithRun(path)->addTimelineNote(1, {0, 5, 5, "spike"});
    const auto session = SessionFile::open(path, OpenMode::ReadOnly);
    EXPECT_THROW(session->setNote(1, "no"), base::BadInput);
    session->keepEditsInMemory();
    session->setNote(1, "in memory");
    session->setTags(1, {"z", "y"});
    session->updateTimelineNote({1, 5, 9, "longer"});
    session->addTimelineNote(1, {0, 20, 20, "second"});
    EXPECT_EQ(session->run(1).note, "in memory") << "what was typed is shown";
    EXPECT_EQ(session->timelineNotes(1).size(), 2U);
    EXPECT_EQ(SessionFile::open(path, OpenMode::ReadOnly)->run(1).note, "");
    session->saveCopy(folder.file("copy.vitrine"), false);
    const auto copy = SessionFile::open(folder.file("copy.vitrine"), OpenMode::ReadOnly);
    EXPECT_EQ(copy->run(1).note, "in memory");
    EXPECT_THAT(copy->run(1).tags, testing::ElementsAre("z", "y"));
    ASSERT_EQ(copy->timelineNotes(1).size(), 2U);
    EXPECT_EQ(copy->timelineNotes(1)[0].body, "longer");
}

TEST(SessionCopy, WritesEditsOfMemoryWhenItCan) {
    const TempFolder folder;
    const auto session = sessionWithRun(folder.file("a.vitrine"));
    session->keepEditsInMemory();
    session->setNote(1, "waited");
    session->writeEdits();
    EXPECT_FALSE(session->editsInMemory());
    EXPECT_EQ(SessionFile::open(folder.file("a.vitrine"), OpenMode::ReadOnly)->run(1).note, "waited");
    session->setNote(1, "");
    EXPECT_EQ(session->run(1).note, "") << "the file's own table is met again";
}

TEST(SessionCopy, BringsADeletedRunBackWithItsNumber) {
    const TempFolder folder;
    const auto session = sessionWithRun(folder.file("a.vitrine"));
    session->setTags(1, {"oom"});
    session->setNote(1, "why");
    const std::int64_t note = session->addTimelineNote(1, {0, 5, 5, "spike"});
    const auto kept = SessionFile::open(folder.file("kept.vitrine"), OpenMode::CreateOrOpen);
    session->copyRunTo(1, *kept, CopyIds::Same);
    session->deleteRun(1);
    session->createRun(named("second"));
    kept->copyRunTo(1, *session, CopyIds::Same);
    EXPECT_EQ(session->run(1).name, "first");
    EXPECT_EQ(session->run(1).note, "why");
    EXPECT_THAT(session->run(1).tags, testing::ElementsAre("oom"));
    ASSERT_EQ(session->timelineNotes(1).size(), 1U);
    EXPECT_EQ(session->timelineNotes(1)[0].id, note);
    EXPECT_EQ(session->runs().size(), 2U);
}

} // namespace
} // namespace vitrine::sessions
