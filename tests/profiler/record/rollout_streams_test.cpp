// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "base/column_chunk.h"
#include "base/error.h"
#include "base/trace.h"
#include "profiler/record/event_streams.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

EventBatch backFrom(const EventBatch& batch) {
    ChunkNumbers numbers;
    EventBatch back;
    for (const base::ColumnChunk& chunk : encodeBatch(batch, numbers)) {
        EXPECT_TRUE(decodeInto(base::fromBytes(base::toBytes(chunk)), back)) << chunk.stream;
    }
    return back;
}

TEST(RolloutStreams, ComeBackAsTheyWere) {
    EventBatch batch;
    batch.of<base::RolloutEvent>() = {{1, 4, 0, 2, -0.5}};
    batch.of<base::RolloutTokenEvent>() = {{1, 4, 0, 2, 77, -0.25, -0.5, kNan, {9}},
                                           {1, 4, 0, 3, 78, -1, -1, kNan, {}}};
    batch.of<base::RolloutAnswerEvent>() = {{1, 4, 2, 7, 15, 94, 0.5, 1.25, {3}}, {1, 4, 3, 0, -1, 12, kNan, kNan, {}}};
    EventBatch back = backFrom(batch);
    const auto& tokens = back.of<base::RolloutTokenEvent>();
    ASSERT_EQ(tokens.size(), 2U);
    EXPECT_EQ(tokens[0].old, -0.25);
    EXPECT_EQ(tokens[0].text.value, 9U);
    EXPECT_EQ(tokens[1].text.value, 0U);
    const auto& answers = back.of<base::RolloutAnswerEvent>();
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0].batch, 4);
    EXPECT_EQ(answers[0].group, 2);
    EXPECT_EQ(answers[0].place, 7);
    EXPECT_EQ(answers[0].row, 15);
    EXPECT_EQ(answers[0].tokens, 94);
    EXPECT_EQ(answers[0].reward, 0.5);
    EXPECT_EQ(answers[0].judgeSeconds, 1.25);
    EXPECT_EQ(answers[0].finish.value, 3U);
    EXPECT_EQ(answers[1].row, -1) << "it was not trained on";
    EXPECT_TRUE(std::isnan(answers[1].reward));
}

/// Sessions of earlier versions do not say what tokens stand for.
TEST(RolloutStreams, TokensWithoutTexts) {
    EventBatch batch;
    batch.of<base::RolloutTokenEvent>() = {{1, 4, 0, 2, 77, -0.25, -0.5, kNan, {}}};
    ChunkNumbers numbers;
    const std::vector<base::ColumnChunk> chunks = encodeBatch(batch, numbers);
    for (const base::Column& column : chunks.back().columns) {
        EXPECT_NE(column.name, "text") << "nothing needs no column";
    }
    EXPECT_EQ(backFrom(batch).of<base::RolloutTokenEvent>().front().text.value, 0U);
}

TEST(RolloutStreams, RefuseWhatTheyWouldNotWrite) {
    const auto refused = [](const base::RolloutAnswerEvent& event) {
        EventBatch batch;
        batch.of<base::RolloutAnswerEvent>() = {event};
        ChunkNumbers numbers;
        const std::vector<base::ColumnChunk> chunks = encodeBatch(batch, numbers);
        EventBatch back;
        EXPECT_THROW(decodeInto(chunks.back(), back), base::BadInput);
    };
    refused({1, -1, 0, 0, 0, 1, 0, 0, {}});
    refused({1, 1, -1, 0, 0, 1, 0, 0, {}});
    refused({1, 1, 0, -1, 0, 1, 0, 0, {}});
    refused({1, 1, 0, 0, -2, 1, 0, 0, {}});
    refused({1, 1, 0, 0, 0, -1, 0, 0, {}});
}

} // namespace
} // namespace vitrine::profiler
