// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/session_file.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <sqlite3.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sessions/metric_difference.h"
#include "sessions/sqlite/database.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::sessions {
namespace {

using test::readAll;
using test::TempFolder;
using test::writeAll;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

base::ColumnChunk makeChunk(const std::string& stream, std::uint64_t sequence, std::vector<std::int64_t> times) {
    base::ColumnChunk chunk;
    chunk.stream = stream;
    chunk.sequence = sequence;
    chunk.rows = times.size();
    chunk.timeBegin = times.front();
    chunk.timeEnd = times.back();
    chunk.columns.push_back(base::encodeColumn("time", times));
    return chunk;
}

RunInfo makeRun(const std::string& name) {
    RunInfo info;
    info.name = name;
    info.workload = "generate";
    info.specJson = R"({"vitrine":1,"workload":"generate"})";
    info.environmentJson = R"({"program":"0.1.0"})";
    info.tags = {"b", "a"};
    info.note = "first try";
    return info;
}

std::string errorOf(const std::string& path, OpenMode mode) {
    try {
        SessionFile::open(path, mode);
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return "no error";
}

std::vector<std::string> filesIn(const TempFolder& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        names.push_back(entry.path().filename().string());
    }
    return names;
}

TEST(SessionFile, KeepsARunWithEverything) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    RunId run = 0;
    {
        auto session = SessionFile::open(path, OpenMode::CreateOrOpen);
        run = session->createRun(makeRun("first"));
        session->appendChunks(run, {makeChunk("allocations", 0, {1, 2, 3}), makeChunk("frees", 0, {2})});
        session->appendChunks(run, {makeChunk("allocations", 1, {4, 5})});
        EXPECT_EQ(session->chunkCount(run), 3u);
        EXPECT_EQ(session->chunkCount(run + 1), 0u);
        session->putText(run, {"prompt", "Hello"});
        session->putText(run, {"output", "old"});
        session->putText(run, {"output", "new"});
        session->putImage(run, "memory", std::string("\x89PNG\0x", 6));
        session->setLostRecords(run, 7);
        session->addTimelineNote(run, {0, 3, 9, "look here"});
        EXPECT_EQ(session->run(run).status, RunStatus::Running);
        session->finishRun(run, RunStatus::Done, R"({"peak_bytes":10})", "");
    }
    EXPECT_THAT(filesIn(folder), ElementsAre("a.vitrine")) << "a closed session is one plain file";
    auto session = SessionFile::open(path, OpenMode::ReadOnly);
    const RunInfo info = session->run(run);
    EXPECT_EQ(info.name, "first");
    EXPECT_EQ(info.status, RunStatus::Done);
    EXPECT_EQ(info.metricsJson, R"({"peak_bytes":10})");
    EXPECT_EQ(info.lostRecords, 7u);
    EXPECT_EQ(info.note, "first try");
    EXPECT_THAT(info.tags, ElementsAre("b", "a"));
    EXPECT_GE(info.endedMs, info.startedMs);
    EXPECT_EQ(session->text(run, "output"), "new");
    EXPECT_EQ(session->text(run, "log"), std::nullopt);
    EXPECT_EQ(session->texts(run).size(), 2u);
    EXPECT_EQ(session->image(run, "memory"), std::string("\x89PNG\0x", 6));
    EXPECT_THAT(session->streams(run), ElementsAre("allocations", "frees"));
    const auto chunks = session->chunks(run, "allocations");
    ASSERT_EQ(chunks.size(), 2u);
    EXPECT_THAT(base::decodeInt64(chunks[1].columns.at(0), chunks[1].rows), ElementsAre(4, 5));
    EXPECT_EQ(session->chunks(run, "allocations", 1).size(), 1u);
    EXPECT_EQ(session->chunks(run, "allocations", 0, 1).size(), 1u);
    ASSERT_EQ(session->timelineNotes(run).size(), 1u);
    EXPECT_EQ(session->timelineNotes(run)[0].body, "look here");
    EXPECT_THROW(session->setNote(run, "x"), base::BadInput);
}

TEST(SessionFile, RemovesWhatAKilledCreatorLeft) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    // No process has the largest number that a pid_t holds.
    const std::string abandoned = path + ".new-2147483647-1";
    const std::string young = path + ".new-2147483647-2";
    const std::string alive = path + ".new-" + std::to_string(::getpid()) + "-3";
    const std::string foreign = folder.file("b.vitrine.new-2147483647-1");
    for (const std::string& file : {abandoned, young, alive, foreign}) {
        writeAll(file, "half");
        if (file != young) {
            std::filesystem::last_write_time(file,
                                             std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
        }
    }
    SessionFile::open(path, OpenMode::CreateOrOpen);
    EXPECT_FALSE(std::filesystem::exists(abandoned));
    EXPECT_TRUE(std::filesystem::exists(young));
    EXPECT_TRUE(std::filesystem::exists(alive));
    EXPECT_TRUE(std::filesystem::exists(foreign));
}

TEST(SessionFile, EditsNamesTagsNotesAndDeletes) {
    const TempFolder folder;
    auto session = SessionFile::open(folder.file("a.vitrine"), OpenMode::CreateOrOpen);
    const RunId first = session->createRun(makeRun("first"));
    const RunId second = session->createRun(makeRun("second"));
    session->renameRun(first, "renamed");
    session->setNote(first, "");
    session->setTags(first, {"x", "x", "", "y"});
    const std::int64_t note = session->addTimelineNote(first, {0, 1, 2, "n"});
    session->updateTimelineNote({note, 5, 6, "moved"});
    EXPECT_EQ(session->timelineNotes(first)[0].timeBegin, 5);
    session->deleteTimelineNote(note);
    EXPECT_TRUE(session->timelineNotes(first).empty());
    EXPECT_EQ(session->run(first).name, "renamed");
    EXPECT_EQ(session->run(first).note, "");
    EXPECT_THAT(session->run(first).tags, ElementsAre("x", "y"));
    session->appendChunks(second, {makeChunk("s", 0, {1})});
    session->deleteRun(second);
    EXPECT_EQ(session->runs().size(), 1u);
    EXPECT_TRUE(session->streams(second).empty());
    EXPECT_THROW(session->run(second), base::BadInput);
    EXPECT_THROW(session->renameRun(second, "x"), base::BadInput);
    EXPECT_THROW(session->putText(second, {"a", "b"}), base::BadInput);
    EXPECT_THROW(session->appendChunks(second, {makeChunk("s", 1, {1})}), base::Error);
}

TEST(SessionFile, AFailedAppendLeavesNothing) {
    const TempFolder folder;
    auto session = SessionFile::open(folder.file("a.vitrine"), OpenMode::CreateOrOpen);
    const RunId run = session->createRun(makeRun("first"));
    session->appendChunks(run, {makeChunk("s", 0, {1})});
    EXPECT_THROW(session->appendChunks(run, {makeChunk("s", 1, {2}), makeChunk("s", 0, {1})}), base::Error);
    EXPECT_EQ(session->chunks(run, "s").size(), 1u);
    session->appendChunks(run, {makeChunk("s", 1, {2})});
    EXPECT_EQ(session->chunks(run, "s").size(), 2u);
}

TEST(SessionFile, AReaderFollowsTheTail) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    auto writer = SessionFile::open(path, OpenMode::CreateOrOpen);
    const RunId run = writer->createRun(makeRun("first"));
    auto reader = SessionFile::open(path, OpenMode::ReadOnly);
    std::uint64_t next = 0;
    std::uint64_t counter = reader->changeCounter();
    for (std::uint64_t i = 0; i < 5; ++i) {
        writer->appendChunks(run, {makeChunk("s", i, {static_cast<std::int64_t>(i)})});
        const std::uint64_t changed = reader->changeCounter();
        EXPECT_NE(changed, counter);
        counter = changed;
        EXPECT_EQ(reader->changeCounter(), counter) << "nothing happened";
        const auto tail = reader->chunks(run, "s", next);
        ASSERT_EQ(tail.size(), 1u);
        EXPECT_EQ(tail[0].sequence, i);
        next = tail[0].sequence + 1;
    }
    const std::uint64_t own = writer->changeCounter();
    writer->setNote(run, "changed by myself");
    EXPECT_NE(writer->changeCounter(), own);
}

TEST(SessionFile, TwoConnectionsOfOneProcessAppend) {
    const TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    auto a = SessionFile::open(path, OpenMode::CreateOrOpen);
    auto b = SessionFile::open(path, OpenMode::CreateOrOpen);
    const RunId one = a->createRun(makeRun("one"));
    const RunId two = b->createRun(makeRun("two"));
    EXPECT_NE(one, two);
    for (std::uint64_t i = 0; i < 20; ++i) {
        a->appendChunks(one, {makeChunk("s", i, {1})});
        b->appendChunks(two, {makeChunk("s", i, {1})});
    }
    a.reset();
    b->appendChunks(two, {makeChunk("s", 20, {1})});
    EXPECT_EQ(b->chunks(one, "s").size(), 20u);
    EXPECT_EQ(b->chunks(two, "s").size(), 21u);
    b.reset();
    EXPECT_THAT(filesIn(folder), ElementsAre("a.vitrine"));
}

TEST(SessionFile, CopiesARunIntoAnotherSession) {
    const TempFolder folder;
    auto source = SessionFile::open(folder.file("a.vitrine"), OpenMode::CreateOrOpen);
    auto target = SessionFile::open(folder.file("b.vitrine"), OpenMode::CreateOrOpen);
    target->createRun(makeRun("other"));
    const RunId run = source->createRun(makeRun("first"));
    for (std::uint64_t i = 0; i < 150; ++i) {
        source->appendChunks(run, {makeChunk("s", i, {static_cast<std::int64_t>(i)})});
    }
    source->putText(run, {"prompt", "Hello"});
    source->putImage(run, "memory", "png");
    source->addTimelineNote(run, {0, 3, 9, "look here"});
    source->finishRun(run, RunStatus::Failed, R"({"x":1})", "it broke");
    const RunId copy = source->copyRunTo(run, *target);
    const RunInfo info = target->run(copy);
    EXPECT_EQ(info.status, RunStatus::Failed);
    EXPECT_EQ(info.error, "it broke");
    EXPECT_EQ(info.endedMs, source->run(run).endedMs);
    EXPECT_THAT(info.tags, ElementsAre("b", "a"));
    EXPECT_EQ(target->chunks(copy, "s").size(), 150u);
    EXPECT_EQ(target->text(copy, "prompt"), "Hello");
    EXPECT_EQ(target->image(copy, "memory"), "png");
    EXPECT_EQ(target->timelineNotes(copy).size(), 1u);
    const RunId twin = source->copyRunTo(run, *source);
    EXPECT_NE(twin, run);
    EXPECT_EQ(source->chunks(twin, "s").size(), 150u);
}

TEST(SessionFile, RefusesWhatIsNoSessionAndLeavesItAlone) {
    const TempFolder folder;
    const std::string path = folder.file("x.vitrine");
    EXPECT_THAT(errorOf(path, OpenMode::ReadOnly), HasSubstr("no such file"));
    EXPECT_THAT(errorOf(folder.path().string(), OpenMode::ReadWrite), HasSubstr("not a file"));
    EXPECT_THAT(errorOf("/dev/zero", OpenMode::CreateOrOpen), HasSubstr("not a file"));
    EXPECT_THAT(errorOf(folder.file("no/such/folder.vitrine"), OpenMode::CreateOrOpen),
                HasSubstr("no/such/folder.vitrine"));
    const std::string text =
        "This is a text that is longer than a hundred bytes, so that the header check has all that it "
        "wants to look at, and some more.";
    for (const std::string& bytes :
         {std::string(), std::string("SQLite"), std::string("S"), text, std::string(4096, '\0')}) {
        writeAll(path, bytes);
        for (const OpenMode mode : {OpenMode::ReadOnly, OpenMode::ReadWrite, OpenMode::CreateOrOpen}) {
            const std::string message = errorOf(path, mode);
            EXPECT_THAT(message, StartsWith(path + ": "));
            EXPECT_EQ(message.find('\n'), std::string::npos);
            EXPECT_EQ(readAll(path), bytes);
            EXPECT_THAT(filesIn(folder), ElementsAre("x.vitrine"));
        }
    }
}

TEST(SessionFile, RefusesOtherDatabasesAndNewerFormats) {
    const TempFolder folder;
    const std::string path = folder.file("x.vitrine");
    SessionFile::open(path, OpenMode::CreateOrOpen)->createRun(makeRun("first"));
    const std::string good = readAll(path);

    std::string other = good;
    other[68] = 'X';
    writeAll(path, other);
    EXPECT_THAT(errorOf(path, OpenMode::ReadWrite), HasSubstr("another program"));
    EXPECT_EQ(readAll(path), other);

    std::string newer = good;
    newer[63] = 99;
    writeAll(path, newer);
    EXPECT_THAT(errorOf(path, OpenMode::ReadWrite), HasSubstr("newer"));
    EXPECT_EQ(readAll(path), newer);
}

TEST(SessionFile, RefusesCutOffFiles) {
    const TempFolder folder;
    const std::string path = folder.file("x.vitrine");
    {
        auto session = SessionFile::open(path, OpenMode::CreateOrOpen);
        const RunId run = session->createRun(makeRun("first"));
        session->putText(run, {"output", std::string(100'000, 'x')});
    }
    const std::string good = readAll(path);
    for (const std::size_t keep :
         {std::size_t{50}, std::size_t{100}, std::size_t{5000}, good.size() / 2, good.size() - 8192, good.size() - 1}) {
        writeAll(path, good.substr(0, keep));
        EXPECT_THAT(errorOf(path, OpenMode::ReadWrite), HasSubstr("cut off")) << keep;
        EXPECT_EQ(readAll(path).size(), keep);
    }
    writeAll(path, good);
    EXPECT_EQ(errorOf(path, OpenMode::ReadWrite), "no error");
}

TEST(SessionFile, ADamagedHeaderIsBadInput) {
    const TempFolder folder;
    const std::string path = folder.file("runs.vitrine");
    SessionFile::open(path, OpenMode::CreateOrOpen);
    const std::string whole = readAll(path);
    constexpr std::size_t kHeader = 100;
    int refused = 0;
    for (std::size_t at = 0; at < kHeader; ++at) {
        for (const auto& [flip, mode] : {std::pair{0x01, OpenMode::ReadWrite}, {0xff, OpenMode::ReadOnly}}) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ flip);
            writeAll(path, damaged);
            try {
                SessionFile::open(path, mode);
            } catch (const base::BadInput& error) {
                EXPECT_THAT(error.message(), StartsWith(path)) << at;
                ++refused;
            } catch (const base::Error& error) {
                ADD_FAILURE() << "byte " << at << ": " << error.message();
            }
        }
    }
    EXPECT_GT(refused, 60); // of 200: counters and unused bytes may be anything
    // Whole headers of files that are cut off: RefusesCutOffFiles. Each of those is looked at again after a while.
    for (std::size_t bytes = 0; bytes < kHeader; ++bytes) {
        writeAll(path, whole.substr(0, bytes));
        EXPECT_THROW(SessionFile::open(path, OpenMode::ReadOnly), base::BadInput) << bytes;
    }
}

TEST(SessionFile, WhatWaitingCannotMendIsNoBusyFile) {
    // Opening tries again while a file is busy.
    EXPECT_THROW(throwSqliteError(SQLITE_BUSY, "a", "locked"), Busy);
    for (const int code : {SQLITE_FULL, SQLITE_IOERR, SQLITE_NOMEM}) {
        try {
            throwSqliteError(code, "a", "what");
        } catch (const Busy&) {
            ADD_FAILURE() << code;
        } catch (const base::Internal& error) {
            EXPECT_THAT(error.message(), StartsWith("a: "));
        }
    }
}

TEST(SessionFile, NeverCrashesOnDamagedPages) {
    const TempFolder folder;
    const std::string path = folder.file("x.vitrine");
    {
        auto session = SessionFile::open(path, OpenMode::CreateOrOpen);
        const RunId run = session->createRun(makeRun("first"));
        for (std::uint64_t i = 0; i < 30; ++i) {
            session->appendChunks(run,
                                  {makeChunk("s", i, std::vector<std::int64_t>(100, static_cast<std::int64_t>(i)))});
        }
        session->putText(run, {"output", std::string(50'000, 'x')});
    }
    const std::string good = readAll(path);
    int refused = 0;
    std::uint32_t state = 12345;
    for (int i = 0; i < 200; ++i) {
        std::string bad = good;
        for (int k = 0; k < 40; ++k) {
            state = state * 1664525u + 1013904223u;
            bad[100 + state % (bad.size() - 100)] = static_cast<char>(state >> 24);
        }
        writeAll(path, bad);
        try {
            auto session = SessionFile::open(path, OpenMode::ReadOnly);
            for (const RunInfo& run : session->runs()) {
                for (const std::string& stream : session->streams(run.id)) {
                    session->chunks(run.id, stream);
                }
                session->texts(run.id);
            }
        } catch (const base::Error& error) {
            ++refused;
            EXPECT_THAT(error.message(), StartsWith(path + ": "));
            EXPECT_EQ(error.message().find('\n'), std::string::npos);
        }
        EXPECT_EQ(readAll(path), bad);
    }
    EXPECT_GT(refused, 100);
}

TEST(SessionFile, TablesWithOtherColumnsAreDamage) {
    for (const char* change :
         {"ALTER TABLE tags RENAME COLUMN tag TO other", "ALTER TABLE notes RENAME COLUMN body TO b",
          "ALTER TABLE runs RENAME COLUMN status TO other"}) {
        const TempFolder folder;
        const std::string path = folder.file("x.vitrine");
        SessionFile::open(path, OpenMode::CreateOrOpen)->createRun(makeRun("first"));
        Database(path, Database::Access::ReadWrite).execute(change);
        try {
            SessionFile::open(path, OpenMode::ReadOnly)->runs();
            ADD_FAILURE() << change;
        } catch (const base::BadInput& error) {
            EXPECT_THAT(error.message(), HasSubstr("is damaged")) << change;
        }
    }
}

/// A session with one row in each of its tables.
void makeFullSession(const std::string& path) {
    auto session = SessionFile::open(path, OpenMode::CreateOrOpen);
    RunInfo info = makeRun("first");
    info.tags = {"a"};
    const RunId run = session->createRun(info);
    session->appendChunks(run, {makeChunk("s", 0, {1})});
    session->putText(run, {"prompt", "Hello"});
    session->putImage(run, "memory", "bytes");
    session->addTimelineNote(run, {0, 3, 9, "look here"});
    session->setSweep(run, "sweep");
    session->putSessionText("queue", "{}");
    session->finishRun(run, RunStatus::Done, "{}", "");
}

/// Reads all that a session has.
void readEverything(const std::string& path) {
    const auto session = SessionFile::open(path, OpenMode::ReadOnly);
    const std::vector<RunInfo> runs = session->runs();
    if (!session->damagedRuns().empty()) {
        session->run(session->damagedRuns().begin()->first);
    }
    for (const RunInfo& info : runs) {
        session->texts(info.id);
        session->timelineNotes(info.id);
        for (const std::string& image : session->images(info.id)) {
            session->image(info.id, image);
        }
        for (const std::string& stream : session->streams(info.id)) {
            std::uint64_t next = 0;
            for (auto batch = session->chunks(info.id, stream, next, 1); !batch.empty();
                 batch = session->chunks(info.id, stream, next, 1)) {
                next = batch.back().sequence + 1;
            }
        }
    }
}

TEST(SessionFile, AValueOfAnotherTypeIsDamageInEveryColumn) {
    const TempFolder folder;
    const std::string whole = folder.file("whole.vitrine");
    makeFullSession(whole);
    readEverything(whole);
    std::vector<std::pair<std::string, std::string>> columns;
    {
        const Database database(whole, Database::Access::ReadOnly);
        Statement described(database, "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE "
                                      "m.type = 'table' AND m.name NOT LIKE 'sqlite%'");
        while (described.step()) {
            columns.emplace_back(described.text(0), described.text(1));
        }
    }
    EXPECT_GT(columns.size(), 35U);
    const std::string path = folder.file("x.vitrine");
    std::size_t wrong = 0;
    for (const auto& [table, column] : columns) {
        std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
        {
            const Database database(path, Database::Access::ReadWrite);
            database.execute("PRAGMA foreign_keys = OFF");
            const std::string value =
                database.queryText("SELECT typeof(" + column + ") FROM " + table) == "text" ? "x'00'" : "'x'";
            try {
                database.execute("UPDATE " + table + " SET " + column + " = " + value);
            } catch (const base::Error&) {
                continue; // the number of a row takes no other value
            }
        }
        ++wrong;
        try {
            readEverything(path);
            ADD_FAILURE() << table << "." << column;
        } catch (const base::BadInput& error) {
            EXPECT_THAT(error.message(), HasSubstr("is damaged")) << table << "." << column;
            EXPECT_THAT(error.message(), StartsWith(path + ": ")) << table << "." << column;
        }
    }
    EXPECT_GT(wrong, 25U);
}

TEST(SessionFile, AWrongValueDamagesItsRunAlone) {
    for (const auto& [change, where] : std::vector<std::pair<std::string, std::string>>{
             {"UPDATE runs SET lost_records = 'x' WHERE id = 1", "lost_records of runs"},
             {"UPDATE runs SET owner_pid = 'x' WHERE id = 1", "owner_pid of runs"},
             {"UPDATE tags SET position = 'x' WHERE run = 1", "position of tags"},
             {"UPDATE chunks SET data = 'x' WHERE run = 1", "data of chunks"},
             {"UPDATE texts SET body = x'00' WHERE run = 1", "body of texts"}}) {
        const TempFolder folder;
        const std::string path = folder.file("x.vitrine");
        makeFullSession(path);
        SessionFile::open(path, OpenMode::ReadWrite)->createRun(makeRun("second"));
        Database(path, Database::Access::ReadWrite).execute(change);
        for (const OpenMode mode : {OpenMode::ReadOnly, OpenMode::ReadWrite}) {
            const auto session = SessionFile::open(path, mode);
            ASSERT_EQ(session->runs().size(), 1U) << change;
            EXPECT_EQ(session->runs()[0].name, "second");
            EXPECT_EQ(session->run(2).name, "second");
            EXPECT_EQ(session->sessionText("queue"), "{}");
            ASSERT_EQ(session->damagedRuns().size(), 1U) << change;
            for (const auto& read :
                 std::vector<std::function<void()>>{[&] { session->run(1); }, [&] { session->texts(1); },
                                                    [&] { session->streams(1); }, [&] { session->chunks(1, "s"); }}) {
                try {
                    read();
                    ADD_FAILURE() << change;
                } catch (const base::BadInput& error) {
                    EXPECT_THAT(error.message(), StartsWith(path + ": run 1 is damaged (the column " + where));
                }
            }
        }
        const auto session = SessionFile::open(path, OpenMode::ReadWrite);
        session->deleteRun(1);
        EXPECT_TRUE(SessionFile::open(path, OpenMode::ReadOnly)->damagedRuns().empty());
    }
}

TEST(SessionFile, TheLastNumberOfAChunkEndsItsStream) {
    const TempFolder folder;
    const std::string path = folder.file("x.vitrine");
    const std::uint64_t last = std::numeric_limits<std::int64_t>::max();
    {
        auto session = SessionFile::open(path, OpenMode::CreateOrOpen);
        session->appendChunks(session->createRun(makeRun("first")), {makeChunk("s", last, {1})});
    }
    const auto session = SessionFile::open(path, OpenMode::ReadOnly);
    EXPECT_EQ(session->chunks(1, "s", last).size(), 1U);
    EXPECT_TRUE(session->chunks(1, "s", last + 1).empty());
}

TEST(SessionFile, StatusNamesAreStable) {
    EXPECT_EQ(runStatusName(RunStatus::OutOfMemory), "out_of_memory");
    EXPECT_EQ(runStatusName(RunStatus::Interrupted), "interrupted");
}

TEST(CompareMetrics, FlattensNumbersAndKeepsWhatOnlyOneHas) {
    RunInfo a;
    RunInfo b;
    a.metricsJson = R"({"peak":10,"by":{"weights":4},"ids":[1,2,3],"text":"x",
                        "variants":[{"weights":"quantized","seconds":2},{"weights":"dequantized","seconds":5}]})";
    b.metricsJson = R"({"peak":12,"by":{"kv_cache":1},"variants":[{"weights":"dequantized","seconds":6}]})";
    std::vector<std::string> lines;
    for (const MetricDifference& row : compareMetrics(a, b)) {
        lines.push_back(row.name + " " + (row.a ? std::to_string(static_cast<int>(*row.a)) : "-") + " " +
                        (row.b ? std::to_string(static_cast<int>(*row.b)) : "-"));
    }
    EXPECT_THAT(lines, ElementsAre("by.kv_cache - 1", "by.weights 4 -", "peak 10 12",
                                   "variants.dequantized.seconds 5 6", "variants.quantized.seconds 2 -"));
    a.metricsJson = "not json";
    EXPECT_EQ(compareMetrics(a, b).size(), 3u);
}

TEST(SessionFile, KeepsTheSweepOfARunAndTakesItOutAgain) {
    const test::TempFolder folder;
    auto session = SessionFile::open(folder.file("a.vitrine"), OpenMode::CreateOrOpen);
    RunInfo info;
    info.sweep = "rates";
    const RunId run = session->createRun(info);
    EXPECT_EQ(session->runs().front().sweep, "rates");
    auto other = SessionFile::open(folder.file("b.vitrine"), OpenMode::CreateOrOpen);
    EXPECT_EQ(other->run(session->copyRunTo(run, *other)).sweep, "rates") << "a copy stays in its group";
    session->setSweep(run, "");
    EXPECT_EQ(session->run(run).sweep, "");
    EXPECT_THROW(session->setSweep(run + 1, "rates"), base::BadInput);
    session->setSweep(run, "more");
    session->deleteRun(run);
    EXPECT_EQ(session->createRun({}), run + 1);
    EXPECT_EQ(session->runs().front().sweep, "");
}

TEST(SessionFile, KeepsTextsOfItsOwn) {
    const test::TempFolder folder;
    auto session = SessionFile::open(folder.file("a.vitrine"), OpenMode::CreateOrOpen);
    EXPECT_FALSE(session->sessionText("queue"));
    session->putSessionText("queue", "one");
    session->putSessionText("queue", "two");
    EXPECT_EQ(session->sessionText("queue"), "two");
    session->putSessionText("queue", "");
    EXPECT_FALSE(session->sessionText("queue"));
}

} // namespace
} // namespace vitrine::sessions
