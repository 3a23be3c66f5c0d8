// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/data_rows.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/training/data/packing.h"

namespace vitrine::engine {
namespace {

TrainingRow dataRow(std::int64_t line, std::vector<std::int32_t> tokens, std::vector<std::uint8_t> trained) {
    TrainingRow row;
    row.line = line;
    row.tokens = std::move(tokens);
    row.trained = std::move(trained);
    return row;
}

TEST(DataRows, EveryRowIsUsedOrHasAReason) {
    DataRows rows({});
    rows.add(dataRow(1, {1, 2}, {0, 1}));
    rows.add(dataRow(2, {3, 4}, {1, 0})); // its first token cannot be predicted
    rows.add(dataRow(3, {1, 2}, {1, 1})); // equal ids, other labels
    rows.addUnreadable(4, "no object");
    rows.add(dataRow(5, {1, 2, 3}, {0, 1, 1}));
    EXPECT_EQ(rows.rows(), 5);
    ASSERT_EQ(rows.used().size(), 2U);
    EXPECT_EQ(rows.used()[1].line, 5);
    ASSERT_EQ(rows.leftOut().size(), 3U);
    EXPECT_EQ(rows.leftOut()[0].reason, LeftOutReason::NoAnswer);
    EXPECT_EQ(rows.leftOut()[1].reason, LeftOutReason::Duplicate);
    EXPECT_EQ(rows.leftOut()[1].firstLine, 1);
    EXPECT_EQ(rows.leftOut()[2].why, "no object");
}

TEST(DataRows, DuplicatesAreKeptWhereTheyAreWanted) {
    DataRowOptions options;
    options.keepDuplicates = true;
    DataRows rows(options);
    rows.add(dataRow(1, {1, 2}, {0, 1}));
    rows.add(dataRow(2, {1, 2}, {0, 1}));
    EXPECT_EQ(rows.used().size(), 2U);
}

TEST(DataRows, ARowThatIsNotUsedHasNoDuplicates) {
    DataRows rows({});
    rows.add(dataRow(1, {1, 2}, {0, 0}));
    rows.add(dataRow(2, {1, 2}, {0, 1}));
    ASSERT_EQ(rows.used().size(), 1U);
    EXPECT_EQ(rows.used()[0].line, 2);
}

TEST(DataRows, LongRowsAreCutSkippedOrKeepTheirEnd) {
    DataRowOptions options;
    options.sequenceLength = 2;
    options.longRows = LongRows::Skip;
    options.exceptions = parseLongRowExceptions("2=keep-end+3=cut", "here");
    DataRows rows(options);
    for (std::int32_t line = 1; line <= 3; ++line) {
        rows.add(dataRow(line, {line, 8, 9}, {1, 1, 1}));
    }
    EXPECT_EQ(rows.count(LeftOutReason::TooLong), 1);
    ASSERT_EQ(rows.used().size(), 2U);
    EXPECT_TRUE(rows.used()[0].keepsEnd);
    const PackingResult packed = packRows(rows.takeTokens(), {2, true});
    ASSERT_EQ(packed.sequences.size(), 2U);
    EXPECT_EQ(packed.sequences[0].tokens, (std::vector<std::int32_t>{8, 9}));
    EXPECT_EQ(packed.sequences[1].tokens, (std::vector<std::int32_t>{3, 8}));
    EXPECT_EQ(packed.cutTokens, 2);
}

TEST(DataRows, TokensAreNotKeptWhereTheyCanBeReadAgain) {
    DataRowOptions options;
    std::vector<std::uint32_t> read;
    options.readAgain = [&](const RowFacts& facts) {
        read.push_back(facts.line);
        return dataRow(facts.line, {static_cast<std::int32_t>(facts.line), 2}, {1, 1});
    };
    DataRows rows(options);
    for (const std::int32_t line : {1, 2, 3}) {
        rows.add(dataRow(line, {line, 2}, {1, 1}));
    }
    EXPECT_TRUE(read.empty()) << "other hashes need no look";
    rows.add(dataRow(4, {2, 2}, {1, 1}));
    EXPECT_EQ(read, std::vector<std::uint32_t>{2});
    EXPECT_EQ(rows.count(LeftOutReason::Duplicate), 1);
    EXPECT_EQ(rows.leftOut().at(0).firstLine, 2);
    EXPECT_TRUE(rows.takeTokens().empty());
}

TEST(DataRows, AllRowsThatAreLeftOutAreCountedAndTheFirstOnesListed) {
    DataRows rows({});
    for (std::size_t line = 1; line <= kMostListedRows + 5; ++line) {
        rows.add(dataRow(static_cast<std::int64_t>(line), {1}, {1}));
    }
    EXPECT_EQ(rows.count(LeftOutReason::NoAnswer), static_cast<std::int64_t>(kMostListedRows) + 5);
    EXPECT_EQ(rows.leftOut().size(), kMostListedRows);
}

TEST(DataRows, ExceptionsThatCannotBeReadAreNamed) {
    for (const char* text : {"2", "2=drop", "x=cut", "0=cut", "2=cut+", "2=cut+3"}) {
        if (std::string(text) == "2=cut+") {
            EXPECT_EQ(parseLongRowExceptions(text, "here").size(), 1U);
        } else {
            EXPECT_THROW(parseLongRowExceptions(text, "here"), base::BadInput) << text;
        }
    }
}

} // namespace
} // namespace vitrine::engine
