// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/plain_export.h"

#include <array>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sessions/sqlite/database.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::sessions {
namespace {

TEST(PlainExport, ExpandsStreamsIntoTables) {
    const test::TempFolder folder;
    auto session = SessionFile::open(folder.file("a.vitrine"), OpenMode::CreateOrOpen);
    RunInfo info;
    info.name = "first";
    info.workload = "generate";
    info.tags = {"t"};
    info.note = "n";
    const RunId run = session->createRun(info);
    for (std::uint64_t sequence = 0; sequence < 2; ++sequence) {
        base::ColumnChunk chunk;
        chunk.stream = "memory.pyramid.2";
        chunk.sequence = sequence;
        chunk.rows = 2;
        chunk.columns.push_back(base::encodeColumn("time", std::vector<std::int64_t>{1, -2}));
        chunk.columns.push_back(base::encodeColumn("address", std::vector<std::uint64_t>{3, 4}));
        chunk.columns.push_back(base::encodeColumn("value", std::vector<double>{0.5, 0.25}));
        chunk.columns.push_back(base::encodeColumn("na\"me", std::vector<std::string>{"x", "y"}));
        session->appendChunks(run, {chunk});
    }
    session->putText(run, {"prompt", "Hello"});
    session->finishRun(run, RunStatus::Done, "{}", "");
    const std::string out = folder.file("out.db");
    test::writeAll(out, "another file");
    const std::array<RunId, 1> runs{run};
    EXPECT_THROW(exportPlainTables(*session, runs, out), base::BadInput);
    EXPECT_EQ(test::readAll(out), "another file");
    test::writeAll(out, "");
    exportPlainTables(*session, runs, out);
    exportPlainTables(*session, runs, out); // over the earlier export
    const Database plain(out, Database::Access::ReadOnly);
    EXPECT_EQ(plain.queryInteger("SELECT count(*) FROM memory_pyramid_2 WHERE run = 1"), 4);
    EXPECT_EQ(plain.queryInteger("SELECT sum(time) FROM memory_pyramid_2"), -2);
    EXPECT_EQ(plain.queryText("SELECT group_concat(\"na\"\"me\", '') FROM memory_pyramid_2"), "xyxy");
    EXPECT_EQ(plain.queryText("SELECT status FROM runs"), "done");
    EXPECT_EQ(plain.queryText("SELECT body FROM texts"), "Hello");
    EXPECT_EQ(plain.queryText("SELECT tag FROM tags"), "t");
    EXPECT_THROW(exportPlainTables(*session, runs, session->path()), base::BadInput);
}

TEST(PlainExport, ChunksOfAStreamMayDifferInColumns) {
    const test::TempFolder folder;
    auto session = SessionFile::open(folder.file("a.vitrine"), OpenMode::CreateOrOpen);
    const RunId run = session->createRun({});
    const auto append = [&](std::uint64_t sequence, const std::vector<const char*>& names) {
        base::ColumnChunk chunk;
        chunk.stream = "allocations";
        chunk.sequence = sequence;
        chunk.rows = 1;
        for (const char* name : names) {
            chunk.columns.push_back(base::encodeColumn(name, std::vector<std::int64_t>{7}));
        }
        session->appendChunks(run, {chunk});
    };
    append(0, {"id", "shape0"});
    append(1, {"id"});
    append(2, {"id", "shape0", "shape1"});
    const std::string out = folder.file("out.db");
    const std::array<RunId, 1> runs{run};
    exportPlainTables(*session, runs, out);
    const Database plain(out, Database::Access::ReadOnly);
    EXPECT_EQ(plain.queryInteger("SELECT sum(id) FROM allocations"), 21);
    EXPECT_EQ(plain.queryInteger("SELECT count(shape0) FROM allocations"), 2);
    EXPECT_EQ(plain.queryInteger("SELECT count(shape1) FROM allocations"), 1);
    append(3, {"id", "id"});
    EXPECT_THROW(exportPlainTables(*session, runs, out), base::BadInput);
}

} // namespace
} // namespace vitrine::sessions
