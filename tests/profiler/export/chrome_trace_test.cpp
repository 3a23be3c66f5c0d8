// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/export/chrome_trace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "profiler/timeline/memory_facet.h"
#include "tests/profiler/analysis/scripted_run.h"
#include "tests/profiler/record/reference.h"

namespace vitrine::profiler {
namespace {

using base::MemoryCategory;
using nlohmann::json;
using testing::kGiB;

json exported(const RunTimeline& timeline, const ChromeTraceOptions& options) {
    std::ostringstream out;
    writeChromeTrace(timeline, options, out);
    return json::parse(out.str());
}

std::vector<json> named(const json& trace, std::string_view phase, std::string_view name) {
    std::vector<json> found;
    for (const json& event : trace.at("traceEvents")) {
        if (event.at("ph") == phase && (name.empty() || event.at("name") == name)) {
            found.push_back(event);
        }
    }
    return found;
}

TEST(ChromeTrace, HoldsScopesSpansCountersAndFailures) {
    testing::ScriptedRun run;
    run.time = 1'234'567;
    run.begin(base::ScopeKind::Phase, "decode \"quoted\" \xff");
    run.begin(base::ScopeKind::Step, "decode", 3, 17);
    run.begin(base::ScopeKind::Op, "ExpertMlp");
    const std::uint64_t block = run.allocate("hidden", MemoryCategory::Activations, 2 * kGiB);
    run.time += 1'000;
    run.free(block);
    run.end();
    run.end();
    run.span("Read", "a", 100, 300, 50);
    run.span("Read", "b", 200, 400, 60);
    run.span("Kernels", "norm", 500, 600, 10);
    run.counter("kv_tokens", 17);
    run.counter("tokens_per_second", std::numeric_limits<double>::infinity());
    run.outOfMemory("grad_logits", MemoryCategory::Logits, 3 * kGiB, 4 * kGiB, 2 * kGiB, kGiB);
    run.record(base::TokenEvent{run.time, 0, 5, 42, -0.5F});
    ChromeTraceOptions options;
    options.runName = "test";
    options.timeBase = base::TimeBase::Virtual;
    options.allocations = true;
    const json trace = exported(*run.timeline(), options);
    EXPECT_EQ(trace.at("otherData").at("time_base"), "virtual");
    EXPECT_EQ(named(trace, "M", "process_name").at(0).at("args").at("name"), "test (virtual time)");
    const json step = named(trace, "X", "step 3").at(0);
    EXPECT_EQ(step.at("ts"), 1234.567);
    EXPECT_EQ(step.at("dur"), 1.0);
    EXPECT_EQ(step.at("args").at("tokens"), 17);
    EXPECT_EQ(named(trace, "X", "ExpertMlp").at(0).at("cat"), "op");
    // Spans that overlap without nesting need two tracks.
    EXPECT_NE(named(trace, "X", "a").at(0).at("tid"), named(trace, "X", "b").at(0).at("tid"));
    // What the device did is a process of its own.
    EXPECT_EQ(named(trace, "X", "b").at(0).at("pid"), 1);
    EXPECT_EQ(named(trace, "X", "norm").at(0).at("pid"), 2);
    EXPECT_EQ(named(trace, "M", "process_name").at(1).at("args").at("name"), "GPU");
    const std::vector<json> memory = named(trace, "C", "memory");
    ASSERT_EQ(memory.size(), 2U);
    EXPECT_EQ(memory[0].at("args").at("activations"), 2 * kGiB);
    EXPECT_EQ(memory[1].at("args").at("activations"), 0);
    EXPECT_EQ(named(trace, "C", "kv_tokens").at(0).at("args").at("value"), 17);
    EXPECT_TRUE(named(trace, "C", "tokens_per_second").empty());
    EXPECT_EQ(named(trace, "i", "Out of memory: 3.00 GiB for grad_logits").at(0).at("s"), "g");
    EXPECT_EQ(named(trace, "i", "token 42").at(0).at("args").at("position"), 5);
    EXPECT_EQ(named(trace, "b", "hidden").at(0).at("id"), named(trace, "e", "hidden").at(0).at("id"));
    for (const json& event : trace.at("traceEvents")) {
        EXPECT_TRUE(event.contains("pid"));
    }
}

TEST(ChromeTrace, KeepsThePeakWhenItThinsOut) {
    const testing::RandomRun run = testing::makeRun(5, {.steps = 4000});
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : testing::record(run, 5)) {
        builder.add(chunk);
    }
    const auto timeline = builder.snapshot();
    ChromeTraceOptions options;
    options.memorySamples = 100;
    const std::vector<json> memory = named(exported(*timeline, options), "C", "memory");
    EXPECT_LE(memory.size(), 100U);
    std::uint64_t highest = 0;
    for (const json& event : memory) {
        std::uint64_t total = 0;
        for (const json& bytes : event.at("args")) {
            total += bytes.get<std::uint64_t>();
        }
        highest = std::max(highest, total);
    }
    EXPECT_EQ(highest, timeline->memory().peak(0, timeline->end()).maxTotal);
    EXPECT_EQ(exported(*timeline, {}).at("otherData").at("time_base"), "monotonic");
}

TEST(ChromeTrace, StopsWhenAsked) {
    const testing::RandomRun run = testing::makeRun(6, {.steps = 9000});
    RunTimelineBuilder builder;
    for (const base::ColumnChunk& chunk : testing::record(run, 6)) {
        builder.add(chunk);
    }
    base::StopSource source;
    source.request_stop();
    ChromeTraceOptions options;
    options.stop = source.get_token();
    std::ostringstream out;
    EXPECT_THROW(writeChromeTrace(*builder.snapshot(), options, out), base::Cancelled);
    RunTimelineBuilder empty;
    EXPECT_TRUE(exported(*empty.snapshot(), {}).at("traceEvents").is_array());
}

} // namespace
} // namespace vitrine::profiler
