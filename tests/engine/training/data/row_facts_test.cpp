// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/row_facts.h"

#include <gtest/gtest.h>

namespace vitrine::engine {
namespace {

TrainingRow factsRow(std::vector<std::int32_t> tokens, std::vector<std::uint8_t> trained) {
    TrainingRow row;
    row.line = 7;
    row.offset = 123;
    row.tokens = std::move(tokens);
    row.trained = std::move(trained);
    return row;
}

TEST(RowFacts, SayWhatIsKeptAndTrained) {
    const TrainingRow row = factsRow({1, 2, 3, 4, 9}, {1, 0, 1, 1, 1});
    const std::vector<std::int32_t> ends{9};
    const RowFacts whole = factsOf(row, 0, ends);
    EXPECT_EQ(whole.line, 7U);
    EXPECT_EQ(whole.offset, 123U);
    EXPECT_EQ(whole.tokens, 5U);
    EXPECT_EQ(whole.trained, 3U) << "the first token cannot be predicted";
    EXPECT_TRUE(whole.endTrained);
    const RowFacts cut = factsOf(row, 3, ends);
    EXPECT_EQ(cut.kept(3), 3);
    EXPECT_EQ(cut.trained, 1U);
    EXPECT_EQ(cut.trainedWhole, 3U);
    EXPECT_FALSE(cut.endTrained) << "the end is cut off";
    EXPECT_EQ(cut.hash, whole.hash);
    EXPECT_NE(factsOf(factsRow({1, 2, 3, 9, 4}, {1, 0, 1, 1, 1}), 0, ends).hash, whole.hash);
}

TEST(RowFacts, RowsAreFoundByTheirHashes) {
    RowTable rows;
    RowsByHash byHash;
    const auto any = [](const RowFacts&) { return true; };
    EXPECT_FALSE(byHash.find(rows, 1, any));
    constexpr std::uint32_t kRows = 20'000; // the table grows several times
    for (std::uint32_t i = 0; i < kRows; ++i) {
        RowFacts facts;
        facts.hash = i * 3;
        facts.line = i;
        rows.push_back(facts);
        byHash.addLast(rows);
    }
    for (std::uint32_t i = 0; i < kRows; i += 7) {
        EXPECT_EQ(byHash.find(rows, i * 3, any), i);
        EXPECT_FALSE(byHash.find(rows, i * 3 + 1, any));
    }
}

TEST(RowFacts, RowsWithEqualHashesAreToldApart) {
    RowTable rows;
    RowsByHash byHash;
    for (std::uint32_t line = 0; line < 3; ++line) {
        RowFacts facts;
        facts.hash = 5;
        facts.line = line;
        rows.push_back(facts);
        byHash.addLast(rows);
    }
    EXPECT_EQ(byHash.find(rows, 5, [](const RowFacts& row) { return row.line == 2; }), 2U);
    EXPECT_FALSE(byHash.find(rows, 5, [](const RowFacts& row) { return row.line == 9; }));
}

} // namespace
} // namespace vitrine::engine
