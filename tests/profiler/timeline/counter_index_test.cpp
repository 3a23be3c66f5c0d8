// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/counter_index.h"

#include <gtest/gtest.h>
#include <random>

#include "profiler/record/recorder.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/run_timeline_builder.h"

namespace vitrine::profiler {
namespace {

/// The plainest answer, nanosecond by nanosecond.
CounterColumn byHand(const std::vector<CounterSample>& samples, base::TimeNs begin, base::TimeNs end) {
    CounterColumn column;
    double sum = 0;
    std::uint64_t length = 0;
    const auto take = [&](double value) {
        column.least = column.known ? std::min(column.least, value) : value;
        column.largest = column.known ? std::max(column.largest, value) : value;
        column.known = true;
    };
    for (base::TimeNs time = begin; time < end; ++time) {
        const CounterSample* holds = nullptr;
        for (const CounterSample& sample : samples) {
            holds = sample.time <= time ? &sample : holds;
            if (sample.time == time) {
                ++column.samples;
                take(sample.value);
            }
        }
        if (holds != nullptr) {
            take(holds->value);
            sum += holds->value;
            ++length;
        }
    }
    column.mean = length == 0 ? 0 : sum / static_cast<double>(length);
    return column;
}

TEST(CounterIndex, AgreesWithWalkingAllSamples) {
    std::mt19937 random(11);
    for (const std::size_t count : {0U, 1U, 2U, 63U, 64U, 65U, 300U}) {
        std::vector<CounterSample> samples;
        base::TimeNs time = 5;
        for (std::size_t i = 0; i < count; ++i) {
            samples.push_back({time, static_cast<double>(random() % 1000) - 300});
            time += 1 + static_cast<base::TimeNs>(random() % 3);
        }
        const CounterIndex index(samples);
        for (int i = 0; i < 60; ++i) {
            const auto begin = static_cast<base::TimeNs>(random() % static_cast<unsigned>(time + 5));
            const auto end = begin + 1 + static_cast<base::TimeNs>(random() % static_cast<unsigned>(time));
            const CounterColumn expected = byHand(samples, begin, end);
            const CounterColumn found = index.column(begin, end);
            ASSERT_EQ(found.known, expected.known) << count << ": " << begin << " to " << end;
            ASSERT_EQ(found.samples, expected.samples);
            ASSERT_EQ(found.least, expected.least);
            ASSERT_EQ(found.largest, expected.largest);
            ASSERT_NEAR(found.mean, expected.mean, 1e-9);
        }
    }
}

TEST(CounterIndex, FindsOnePeakAmongMany) {
    std::vector<CounterSample> samples;
    for (int i = 0; i < 300'000; ++i) {
        samples.push_back({i * 100, i == 123'456 ? 9.0 : 1.0});
    }
    const CounterIndex index(samples);
    EXPECT_EQ(index.column(0, 30'000'000).largest, 9);
    EXPECT_EQ(index.column(0, 12'345'600).largest, 1);
    EXPECT_EQ(index.column(12'345'601, 12'345'700).largest, 9) << "it still holds";
    EXPECT_EQ(index.column(12'345'700, 30'000'000).largest, 1);
    EXPECT_NEAR(index.column(0, 30'000'000).mean, 1 + 8.0 / 300'000, 1e-12);
}

TEST(CounterIndex, ATimelineAnswersFromIt) {
    Recorder recorder;
    const base::StringId name = recorder.intern("gpu.power_w");
    recorder.record(base::CounterEvent{10, name, 100});
    recorder.record(base::CounterEvent{30, name, 300});
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : recorder.finish()) {
        builder.add(chunk);
    }
    const auto timeline = builder.snapshot();
    const std::vector<CounterColumn> columns = timeline->counters().columns("gpu.power_w", 0, 40, 4);
    ASSERT_EQ(columns.size(), 4U);
    EXPECT_FALSE(columns[0].known);
    EXPECT_EQ(columns[1].mean, 100);
    EXPECT_EQ(columns[2].mean, 100);
    EXPECT_EQ(columns[3].least, 300);
    EXPECT_TRUE(timeline->counters().columns("nothing", 0, 40, 4)[3].known == false);
}

} // namespace
} // namespace vitrine::profiler
