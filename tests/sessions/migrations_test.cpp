// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/sqlite/migrations.h"

#include <array>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sessions/session_file.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::sessions {
namespace {

constexpr std::array<Migration, 2> kSteps{{
    {1, "CREATE TABLE people (name TEXT); INSERT INTO people SELECT full_name FROM old_people; DROP TABLE old_people"},
    {2, "ALTER TABLE people ADD COLUMN age INTEGER NOT NULL DEFAULT 7"},
}};

TEST(Migrations, BringAnOldFileForwardAndKeepItsRows) {
    const test::TempFolder folder;
    const Database database(folder.file("a.db"), Database::Access::Create);
    database.execute("CREATE TABLE old_people (full_name TEXT); INSERT INTO old_people VALUES ('Ada'), ('Grace')");
    migrate(database, kSteps);
    EXPECT_EQ(database.queryInteger("PRAGMA user_version"), 2);
    EXPECT_EQ(database.queryText("SELECT group_concat(name, '+') FROM people"), "Ada+Grace");
    EXPECT_EQ(database.queryInteger("SELECT sum(age) FROM people"), 14);
    migrate(database, kSteps);
    EXPECT_EQ(database.queryInteger("SELECT count(*) FROM people"), 2) << "a second time changes nothing";
}

TEST(Migrations, AFailedStepLeavesTheFileAsItWas) {
    const test::TempFolder folder;
    const Database database(folder.file("a.db"), Database::Access::Create);
    database.execute("CREATE TABLE old_people (full_name TEXT); INSERT INTO old_people VALUES ('Ada')");
    const std::array<Migration, 2> broken{{kSteps[0], {2, "ALTER TABLE nobody ADD COLUMN x"}}};
    EXPECT_THROW(migrate(database, broken), base::Error);
    EXPECT_EQ(database.queryInteger("PRAGMA user_version"), 0);
    EXPECT_EQ(database.queryInteger("SELECT count(*) FROM old_people"), 1);
}

TEST(Migrations, NumbersRunFromOneWithoutHoles) {
    std::int64_t expected = 1;
    for (const Migration& step : migrations()) {
        EXPECT_EQ(step.version, expected++);
    }
    EXPECT_EQ(formatVersion(), expected - 1);
}

TEST(Migrations, ASessionOfVersionZeroIsMigratedWhenOpenedForWriting) {
    const test::TempFolder folder;
    const std::string path = folder.file("old.vitrine");
    {
        const Database old(path, Database::Access::Create);
        old.execute("PRAGMA application_id = 1448366670; CREATE TABLE scratch (x)");
    }
    const std::string before = test::readAll(path);
    EXPECT_THROW(SessionFile::open(path, OpenMode::ReadOnly), base::BadInput);
    EXPECT_EQ(test::readAll(path), before);
    RunInfo info;
    info.name = "first";
    auto session = SessionFile::open(path, OpenMode::ReadWrite);
    const RunId run = session->createRun(info);
    session.reset();
    EXPECT_EQ(SessionFile::open(path, OpenMode::ReadOnly)->run(run).name, "first");
}

TEST(Migrations, ASessionOfVersionOneIsReadAsItIsAndBroughtForwardForWriting) {
    const test::TempFolder folder;
    const std::string path = folder.file("one.vitrine");
    {
        const Database old(path, Database::Access::Create);
        old.execute("PRAGMA application_id = 1448366670");
        migrate(old, migrations().first(1));
    }
    const std::string before = test::readAll(path);
    {
        const auto reader = SessionFile::open(path, OpenMode::ReadOnly);
        EXPECT_TRUE(reader->runs().empty());
        EXPECT_FALSE(reader->sessionText("queue"));
    }
    EXPECT_EQ(test::readAll(path), before);
    auto session = SessionFile::open(path, OpenMode::ReadWrite);
    const RunId run = session->createRun({});
    session->setSweep(run, "rates");
    session->putSessionText("queue", "{}");
    session.reset();
    const auto reader = SessionFile::open(path, OpenMode::ReadOnly);
    EXPECT_EQ(reader->run(run).sweep, "rates");
    EXPECT_EQ(reader->sessionText("queue"), "{}");
}

TEST(Statement, BindsEveryTypeAndGivesItBack) {
    const test::TempFolder folder;
    const Database database(folder.file("a.db"), Database::Access::Create);
    database.execute("CREATE TABLE t (a, b, c, d)");
    const std::vector<std::byte> empty;
    Statement insert(database, "INSERT INTO t VALUES (?, ?, ?, ?)");
    insert.bind(std::uint64_t{1} << 63, std::string("a\0b", 3), std::span<const std::byte>(empty), -1).run();
    Statement read(database, "SELECT a, b, c, d, typeof(c) FROM t");
    ASSERT_TRUE(read.step());
    EXPECT_EQ(read.unsignedInteger(0), std::uint64_t{1} << 63);
    EXPECT_EQ(read.text(1), std::string("a\0b", 3));
    EXPECT_TRUE(read.blob(2).empty());
    EXPECT_EQ(read.integer(3), -1);
    EXPECT_EQ(read.text(4), "blob");
    EXPECT_FALSE(read.step());
}

TEST(Statement, RefusesValuesOfAnotherType) {
    const test::TempFolder folder;
    const Database database(folder.file("a.db"), Database::Access::Create);
    database.execute("CREATE TABLE t (a, b, c, d)");
    database.execute("INSERT INTO t VALUES ('x', 1, 2.5, NULL)");
    Statement read(database, "SELECT a, b, c, d FROM t");
    ASSERT_TRUE(read.step());
    EXPECT_THROW(read.integer(0), base::BadInput);
    EXPECT_THROW(read.blob(0), base::BadInput);
    EXPECT_THROW(read.text(1), base::BadInput);
    EXPECT_THROW(read.integer(2), base::BadInput);
    EXPECT_EQ(read.integer(3), 0);
    EXPECT_EQ(read.text(3), "");
    EXPECT_TRUE(read.blob(3).empty());
}

TEST(Transaction, RollsBackUnlessCommitted) {
    const test::TempFolder folder;
    const Database database(folder.file("a.db"), Database::Access::Create);
    database.execute("CREATE TABLE t (a)");
    {
        const Transaction dropped(database);
        database.execute("INSERT INTO t VALUES (1)");
    }
    {
        Transaction kept(database);
        database.execute("INSERT INTO t VALUES (2)");
        kept.commit();
    }
    EXPECT_EQ(database.queryInteger("SELECT sum(a) FROM t"), 2);
}

TEST(Database, OpensNamesThatLookLikeUris) {
    const test::TempFolder folder;
    const std::string path = folder.file("50% done? #1.vitrine");
    SessionFile::open(path, OpenMode::CreateOrOpen);
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_NO_THROW(SessionFile::open(path, OpenMode::ReadOnly));
}

TEST(Database, ReadsWithoutLocksWhereNothingCanBeWritten) {
    const test::TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    SessionFile::open(path, OpenMode::CreateOrOpen);
    const Database database(path, Database::Access::Immutable);
    EXPECT_EQ(database.queryInteger("SELECT count(*) FROM runs"), 0);
    EXPECT_THROW(database.execute("DELETE FROM runs"), base::BadInput);
}

} // namespace
} // namespace vitrine::sessions
