// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/expert_record.h"

#include <gtest/gtest.h>

namespace vitrine::engine {
namespace {

/// One layer, one expert; the ids are these.
ExpertChoices choices(std::vector<std::uint8_t> ids) {
    return {1, 1, 1, std::move(ids)};
}

using Bytes = std::vector<std::uint8_t>;

TEST(ExpertRecord, PiecesFollowOneAnother) {
    ReadExperts out;
    ExpertRecord record(out);
    record.note(0, 2, choices({9, 1, 2}), 1);
    record.note(2, 1, choices({3}), 0);
    record.note(3, 3, choices({4, 5, 6}), 0); // two of them were drafts
    record.note(4, 1, choices({7}), 0);
    record.finish(5);
    EXPECT_EQ(out.firstKnown, 0);
    EXPECT_EQ(out.choices.bytes, Bytes({1, 2, 3, 4, 7}));
    EXPECT_TRUE(out.complete());
    record.note(5, 1, choices({1}), 0);
    record.finish(3);
    EXPECT_EQ(out.tokens(), 5) << "it has ended before";
}

TEST(ExpertRecord, SharedTokensAreMissing) {
    ReadExperts out;
    ExpertRecord record(out);
    record.note(4, 2, choices({1, 2}), 0);
    record.finish(100);
    EXPECT_EQ(out.firstKnown, 4);
    EXPECT_EQ(out.tokens(), 6);
    EXPECT_FALSE(out.complete());
    EXPECT_TRUE(out.row(3).empty());
    EXPECT_EQ(out.id(5, 0, 0), 2);
    out.before = std::make_shared<ExpertChoices>(choices({6, 7, 8, 9, 9}));
    EXPECT_TRUE(out.complete());
    EXPECT_EQ(out.id(3, 0, 0), 9);
    EXPECT_EQ(out.row(0)[0], 6);
}

TEST(ExpertRecord, AReturnWithFewerSharedTokensFillsThem) {
    ReadExperts out;
    ExpertRecord record(out);
    record.note(4, 2, choices({1, 2}), 0);
    record.note(0, 3, choices({3, 4, 5}), 0);
    record.note(3, 4, choices({6, 7, 8, 9}), 0);
    record.finish(7);
    EXPECT_EQ(out.firstKnown, 0);
    EXPECT_EQ(out.choices.bytes, Bytes({3, 4, 5, 6, 7, 8, 9}));
}

TEST(ExpertRecord, AReturnWithMoreSharedTokensLeavesAGap) {
    ReadExperts out;
    ExpertRecord record(out);
    record.note(0, 2, choices({1, 2}), 0);
    record.note(4, 2, choices({3, 4}), 0);
    record.finish(6);
    EXPECT_EQ(out.firstKnown, 4) << "what comes before the gap is given up";
    EXPECT_EQ(out.choices.bytes, Bytes({3, 4}));
    EXPECT_EQ(out.choices.bytes.capacity(), 2U);
}

TEST(ExpertRecord, SkippedTokensAreZeros) {
    ReadExperts out;
    ExpertRecord record(out);
    record.skipTo(3);
    record.note(0, 2, choices({1, 2}), 0);
    record.skipTo(5);
    record.finish(5);
    EXPECT_EQ(out.choices.bytes, Bytes({1, 2, 0, 0, 0}));
}

TEST(ExpertRecord, AModelWithoutExpertsHasNone) {
    ReadExperts out;
    ExpertRecord record(out);
    record.note(0, 2, {}, 0);
    record.finish(2);
    EXPECT_EQ(out.tokens(), 0);
    EXPECT_TRUE(out.choices.bytes.empty());
}

TEST(ExpertChoices, WideIdsHaveTheirLowByteFirst) {
    const ExpertChoices wide{1, 2, 2, {44, 1, 255, 0, 1, 0, 0, 1}};
    EXPECT_EQ(wide.rows(), 2);
    EXPECT_EQ(wide.id(0, 0, 0), 300);
    EXPECT_EQ(wide.id(0, 0, 1), 255);
    EXPECT_EQ(wide.id(1, 0, 1), 256);
}

} // namespace
} // namespace vitrine::engine
