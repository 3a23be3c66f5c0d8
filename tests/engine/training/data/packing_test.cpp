// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/packing.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace vitrine::engine {
namespace {

TrainingRow packedRow(std::vector<std::int32_t> tokens, std::vector<std::uint8_t> trained, std::int64_t line) {
    return {std::move(tokens), std::move(trained), line};
}

/// Rows of 1 to 40 tokens; each token of all rows is different.
std::vector<TrainingRow> randomRows(std::uint32_t seed, std::size_t count) {
    std::vector<TrainingRow> rows;
    std::int32_t next = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto bits = base::philox4x32(base::philoxKey(seed, 0), i, 0);
        TrainingRow row;
        for (std::uint32_t j = 0; j < 1 + bits[0] % 40; ++j) {
            row.tokens.push_back(next++);
            row.trained.push_back(static_cast<std::uint8_t>((bits[1] >> (j % 32)) & 1U));
        }
        row.line = static_cast<std::int64_t>(i) + 1;
        rows.push_back(std::move(row));
    }
    return rows;
}

/// Checks one document against its row and counts it.
void checkDocument(const PackedSequence& sequence, std::size_t begin, std::size_t document,
                   const std::vector<TrainingRow>& rows, std::int64_t limit, std::vector<int>& seen) {
    const auto row = static_cast<std::size_t>(sequence.rows[document]);
    const auto length = static_cast<std::size_t>(sequence.lengths[document]);
    ++seen[row];
    ASSERT_EQ(length, std::min(rows[row].tokens.size(), static_cast<std::size_t>(limit)));
    for (std::size_t i = 0; i < length; ++i) {
        EXPECT_EQ(sequence.tokens[begin + i], rows[row].tokens[i]);
        const bool counts = i + 1 < length && rows[row].trained[i + 1] != 0;
        EXPECT_EQ(sequence.targets[begin + i], counts ? rows[row].tokens[i + 1] : -1);
    }
}

/// 1 for each row with a target that counts within `limit` tokens: the rows that are kept.
std::vector<int> keptRows(const std::vector<TrainingRow>& rows, std::int64_t limit) {
    std::vector<int> out;
    out.reserve(rows.size());
    for (const TrainingRow& row : rows) {
        const auto length = std::min(row.trained.size(), static_cast<std::size_t>(limit));
        const auto end = row.trained.begin() + static_cast<std::ptrdiff_t>(length);
        out.push_back(std::find(row.trained.begin() + 1, end, 1) == end ? 0 : 1);
    }
    return out;
}

TEST(Packing, EveryTokenOfAKeptRowIsThereOnceAndInOrder) {
    for (const std::int64_t limit : {1, 2, 7, 33, 64, 1000}) {
        for (const bool pack : {true, false}) {
            const std::vector<TrainingRow> rows = randomRows(static_cast<std::uint32_t>(limit), 200);
            const PackingResult result = packRows(rows, {limit, pack});
            std::vector<int> seen(rows.size(), 0);
            std::int64_t total = 0;
            std::int64_t trained = 0;
            for (const PackedSequence& sequence : result.sequences) {
                ASSERT_LE(sequence.tokens.size(), static_cast<std::size_t>(limit));
                ASSERT_EQ(sequence.tokens.size(), sequence.targets.size());
                ASSERT_EQ(sequence.rows.size(), sequence.lengths.size());
                EXPECT_TRUE(std::is_sorted(sequence.rows.begin(), sequence.rows.end()));
                std::size_t begin = 0;
                for (std::size_t i = 0; i < sequence.rows.size(); ++i) {
                    checkDocument(sequence, begin, i, rows, limit, seen);
                    begin += static_cast<std::size_t>(sequence.lengths[i]);
                }
                ASSERT_EQ(begin, sequence.tokens.size());
                total += static_cast<std::int64_t>(begin);
                trained += sequence.predicted();
            }
            const std::vector<int> kept = keptRows(rows, limit);
            const std::int64_t count = std::count(kept.begin(), kept.end(), 1);
            EXPECT_EQ(seen, kept);
            EXPECT_EQ(result.untrainableRows, static_cast<std::int64_t>(rows.size()) - count);
            EXPECT_EQ(result.totalTokens, total);
            EXPECT_EQ(result.trainedTokens, trained);
            EXPECT_TRUE(pack || static_cast<std::int64_t>(result.sequences.size()) == count);
        }
    }
}

TEST(Packing, FillsSequences) {
    std::vector<TrainingRow> rows;
    for (const std::size_t length : {3U, 6U, 4U, 7U, 2U, 8U}) {
        rows.push_back(packedRow(std::vector<std::int32_t>(length, 1), std::vector<std::uint8_t>(length, 1), 1));
    }
    const PackingResult result = packRows(rows, {10, true});
    ASSERT_EQ(result.sequences.size(), 3U);
    EXPECT_EQ(result.sequences[0].rows, (std::vector<std::int32_t>{0, 3}));
    EXPECT_EQ(result.sequences[1].rows, (std::vector<std::int32_t>{1, 2}));
    EXPECT_EQ(result.sequences[2].rows, (std::vector<std::int32_t>{4, 5}));
    EXPECT_EQ(result.sequences[0].lengths, (std::vector<std::int32_t>{3, 7}));
}

TEST(Packing, CutsAreCounted) {
    const std::vector<TrainingRow> rows = {packedRow({1, 2, 3, 4, 5}, {1, 1, 1, 1, 1}, 4), packedRow({6, 7}, {0, 1}, 9),
                                           packedRow({1, 2, 3, 4}, {0, 0, 0, 1}, 12), packedRow({8}, {1}, 13)};
    const PackingResult result = packRows(rows, {3, true});
    EXPECT_EQ(result.cutRows, 2);
    EXPECT_EQ(result.cutTokens, 3);
    EXPECT_EQ(result.cutLines, (std::vector<std::int64_t>{4, 12}));
    EXPECT_EQ(result.totalTokens, 5);
    EXPECT_EQ(result.trainedTokens, 3);
    EXPECT_EQ(result.untrainableRows, 2);
    EXPECT_EQ(result.sequences.size(), 2U);
}

TEST(Packing, ManyShortRowsAreQuick) {
    const std::vector<TrainingRow> rows(200000, packedRow({1, 2}, {1, 1}, 1));
    EXPECT_EQ(packRows(rows, {1000, true}).sequences.size(), 400U);
}

TEST(Packing, PlacesAreKnownWithoutTokens) {
    const std::vector<std::int32_t> lengths{4, 0, 7, 6, 3, 10};
    const PackedRows packed = placeRows(lengths, {10, true});
    ASSERT_EQ(packed.size(), 3U);
    const auto rowsOf = [&](std::size_t sequence) {
        return std::vector<std::int32_t>(packed.sequence(sequence).begin(), packed.sequence(sequence).end());
    };
    EXPECT_EQ(rowsOf(0), (std::vector<std::int32_t>{0, 3}));
    EXPECT_EQ(rowsOf(1), (std::vector<std::int32_t>{2, 4}));
    EXPECT_EQ(rowsOf(2), (std::vector<std::int32_t>{5}));
    EXPECT_EQ(packed.sequenceOf(4), 1U);
    EXPECT_EQ(packed.sequenceOf(5), 2U);
    EXPECT_EQ(packed.sequenceOf(1), packed.size()) << "no sequence takes it";
    EXPECT_EQ(placeRows(lengths, {10, false}).size(), 5U);
    EXPECT_EQ(placeRows({}, {10, true}).size(), 0U);
}

TEST(Packing, WrongArgumentsAreRefused) {
    const std::vector<TrainingRow> rows = {packedRow({1}, {1}, 1)};
    EXPECT_THROW(packRows(rows, {0, true}), base::Internal);
    const std::vector<TrainingRow> empty = {packedRow({}, {}, 1)};
    EXPECT_THROW(packRows(empty, {4, true}), base::Internal);
    EXPECT_TRUE(packRows({}, {4, true}).sequences.empty());
}

} // namespace
} // namespace vitrine::engine
