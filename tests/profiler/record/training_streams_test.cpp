// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <vector>

#include "base/column_chunk.h"
#include "base/error.h"
#include "base/trace.h"
#include "profiler/record/event_streams.h"
#include "profiler/record/recorder.h"
#include "profiler/record/streams.h"
#include "profiler/timeline/run_events.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::profiler {
namespace {

TEST(TrainingStreams, ComeBackAsTheyWere) {
    EventBatch batch;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    batch.of<base::TrainingStepEvent>() = {{1, 9, 1, 128, 2.5, 1e-4, 0.75}, {9, 12, 2, 64, nan, 2e-4, nan}};
    batch.of<base::TrainingMarkEvent>() = {{0, 0, 0, base::TrainingMark::Resumed, 0},
                                           {9, 11, 1, base::TrainingMark::Evaluated, 2.25},
                                           {11, 12, 1, base::TrainingMark::Saved, 0},
                                           {12, 12, 1, base::TrainingMark::Dropped, 0}};
    ChunkNumbers numbers;
    EventBatch back;
    for (const base::ColumnChunk& chunk : encodeBatch(batch, numbers)) {
        EXPECT_TRUE(decodeInto(base::fromBytes(base::toBytes(chunk)), back)) << chunk.stream;
    }
    const auto& steps = back.of<base::TrainingStepEvent>();
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[0].begin, 1);
    EXPECT_EQ(steps[0].end, 9);
    EXPECT_EQ(steps[0].step, 1);
    EXPECT_EQ(steps[0].tokens, 128);
    EXPECT_EQ(steps[0].loss, 2.5);
    EXPECT_EQ(steps[0].learningRate, 1e-4);
    EXPECT_EQ(steps[0].gradientNorm, 0.75);
    EXPECT_TRUE(std::isnan(steps[1].loss)) << "the step that a run failed at";
    const auto& marks = back.of<base::TrainingMarkEvent>();
    ASSERT_EQ(marks.size(), 4U);
    EXPECT_EQ(marks[1].kind, base::TrainingMark::Evaluated);
    EXPECT_EQ(marks[1].value, 2.25);
    EXPECT_EQ(marks[1].begin, 9);
    EXPECT_EQ(marks[3].kind, base::TrainingMark::Dropped);
    EXPECT_EQ(marks[3].step, 1);
}

TEST(TrainingStreams, RefuseWhatTheyWouldNotWrite) {
    const auto refused = [](auto event) {
        EventBatch batch;
        batch.of<decltype(event)>() = {event};
        ChunkNumbers numbers;
        const std::vector<base::ColumnChunk> chunks = encodeBatch(batch, numbers);
        EventBatch back;
        EXPECT_THROW(decodeInto(chunks.back(), back), base::BadInput);
    };
    refused(base::TrainingStepEvent{9, 1, 1, 128, 2.5, 1e-4, 0.75});
    refused(base::TrainingStepEvent{1, 9, -1, 128, 2.5, 1e-4, 0.75});
    refused(base::TrainingStepEvent{1, 9, 1, -128, 2.5, 1e-4, 0.75});
    refused(base::TrainingMarkEvent{9, 1, 1, base::TrainingMark::Saved, 0});
    refused(base::TrainingMarkEvent{1, 9, 1, static_cast<base::TrainingMark>(base::kTrainingMarkCount), 0});
}

TEST(TrainingStreams, TakeFewBytesForEachStep) {
    constexpr std::int64_t kSteps = 100'000;
    Recorder recorder;
    std::size_t bytes = 0;
    RunTimelineBuilder builder;
    const auto keep = [&](const std::vector<base::ColumnChunk>& chunks) {
        for (const base::ColumnChunk& chunk : chunks) {
            bytes += base::toBytes(chunk).size();
            builder.add(chunk);
        }
    };
    for (std::int64_t step = 1; step <= kSteps; ++step) {
        const base::TimeNs begin = step * 7'000'123;
        recorder.record(base::TrainingStepEvent{
            begin, begin + 7'000'000 + step % 977, step, 65536,
            1.2 + std::exp(-static_cast<double>(step) / 9e3) + 0.01 * std::sin(static_cast<double>(step * step)),
            1e-4 * std::cos(static_cast<double>(step) / 7e4), 0.3 + 0.1 * std::sin(static_cast<double>(step) * 1.7)});
        if (step % 100 == 0) { // a drain every so often, as in a run
            recorder.record(base::TrainingMarkEvent{begin, begin + 9, step, base::TrainingMark::Evaluated, 1.3});
            keep(recorder.drain());
        }
    }
    keep(recorder.finish());
    EXPECT_LT(bytes, 200U * kSteps);
    const auto timeline = builder.snapshot();
    const auto steps = events<base::TrainingStepEvent>(*timeline);
    ASSERT_EQ(steps.size(), static_cast<std::size_t>(kSteps));
    EXPECT_EQ(steps.back().step, kSteps);
}

} // namespace
} // namespace vitrine::profiler
