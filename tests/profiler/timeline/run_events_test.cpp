// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/run_events.h"

#include <gtest/gtest.h>

#include "profiler/record/streams.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::profiler {
namespace {

TEST(RunEvents, GiveEachKindByBeginAndLiveWithTheTimeline) {
    EventBatch batch;
    batch.of<base::KvPageEvent>() = {{20, 0, 9, base::PageState::Cached, -1, 0},
                                     {10, 0, 9, base::PageState::Used, 1, 2}};
    ChunkNumbers numbers;
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : encodeBatch(batch, numbers)) {
        builder.add(chunk);
    }
    const std::shared_ptr<const RunTimeline> timeline = builder.snapshot();
    const std::span<const base::KvPageEvent> pages = events<base::KvPageEvent>(*timeline);
    ASSERT_EQ(pages.size(), 2U);
    EXPECT_EQ(pages[0].time, 10);
    EXPECT_EQ(pages[0].state, base::PageState::Used);
    EXPECT_EQ(pages[1].time, 20);
    EXPECT_TRUE(events<base::RequestEvent>(*timeline).empty());
}

} // namespace
} // namespace vitrine::profiler
