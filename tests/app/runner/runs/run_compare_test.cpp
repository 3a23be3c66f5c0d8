// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/runs/run_compare.h"

#include <gtest/gtest.h>

#include "app/runner/recording/run_recording.h"
#include "base/error.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using sessions::OpenMode;
using sessions::RunStatus;
using sessions::SessionFile;

/// A run with two phases whose peaks are given; the second phase may be missing.
sessions::RunId recordRun(const std::string& path, const std::string& spec, const std::string& metrics,
                          std::uint64_t load, std::uint64_t decode) {
    sessions::RunInfo info;
    info.name = "r";
    info.specJson = spec;
    RunRecording recording(SessionFile::open(path, OpenMode::CreateOrOpen), info);
    base::TraceSink& trace = recording.trace();
    const auto phase = [&](std::uint64_t id, const char* name, base::TimeNs begin, std::uint64_t bytes) {
        trace.record(base::ScopeBeginEvent{
            .time = begin, .id = {id}, .kind = base::ScopeKind::Phase, .name = trace.intern(name)});
        trace.record(
            base::AllocationEvent{.time = begin + 10, .id = id, .address = id << 30, .bytes = bytes, .scope = {id}});
        trace.record(base::FreeEvent{begin + 20, id});
        trace.record(base::ScopeEndEvent{.time = begin + 30, .id = {id}});
    };
    phase(1, "load", 100, load);
    if (decode > 0) {
        phase(2, "decode", 200, decode);
    }
    recording.finish(RunStatus::Done, metrics, "");
    return recording.run();
}

TEST(RunCompare, FindsWhatDiffers) {
    const test::TempFolder folder;
    const std::string path = folder.file("a.vitrine");
    const auto a = recordRun(path, R"({"vitrine":1,"workload":"generate","seed":1,"raw":true})",
                             R"({"peak_bytes":500})", 500, 300);
    const auto b =
        recordRun(path, R"({"vitrine":1,"workload":"generate","seed":2,"raw":true})", R"({"peak_bytes":700})", 700, 0);
    const auto session = SessionFile::open(path, OpenMode::ReadOnly);
    const RunComparison comparison = compareRuns(*session, a, *session, b);
    ASSERT_EQ(comparison.spec.size(), 1u);
    EXPECT_EQ(comparison.spec[0].key, "seed");
    ASSERT_EQ(comparison.results.size(), 1u);
    EXPECT_EQ(comparison.results[0].b, 700);
    ASSERT_EQ(comparison.phases.size(), 2u);
    EXPECT_EQ(comparison.phases[0].label, "load");
    EXPECT_EQ(comparison.phases[0].a, 500);
    EXPECT_EQ(comparison.phases[0].b, 700);
    EXPECT_EQ(comparison.phases[1].label, "decode");
    EXPECT_EQ(comparison.phases[1].a, 300);
    EXPECT_EQ(comparison.phases[1].b, std::nullopt);
    EXPECT_EQ(comparison.words.sentence, "#1 and #2 are the same within the noise.") << "less than a page";
    EXPECT_EQ(comparison.notComparable, "Not comparable: answers (other seed).");
    EXPECT_THROW(compareRuns(*session, a, *session, 99), base::Error);
}

} // namespace
} // namespace vitrine::app
