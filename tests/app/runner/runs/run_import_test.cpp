// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/runs/run_import.h"

#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "app/runner/recording/stored_timeline.h"
#include "app/runner/runs/run_compare.h"
#include "base/error.h"
#include "profiler/import/importer.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

/// "counted N": N allocations of 256 bytes, each freed by the next one. "counted N broken" ends in an error.
std::string importCounted(const std::string& path, base::TraceSink& sink, base::ProgressSink*,
                          const base::StopToken& stop) {
    std::ifstream file(path);
    std::string word, broken;
    std::uint64_t count = 0;
    file >> word >> count >> broken;
    const base::StringId name = sink.intern("counted");
    for (std::uint64_t i = 1; i <= count; ++i) {
        base::throwIfStopped(stop);
        const auto time = static_cast<base::TimeNs>(2 * i);
        sink.record(base::AllocationEvent{.time = time,
                                          .id = i,
                                          .address = 4096,
                                          .bytes = 256,
                                          .name = name,
                                          .category = base::MemoryCategory::Other});
        sink.record(base::FreeEvent{time + 1, i});
    }
    if (!broken.empty()) {
        throw base::BadInput(path + ": line 1: the file ends too early; write it again");
    }
    return "{\"allocations\": " + std::to_string(count) + "}";
}

constexpr profiler::Importer kCounted = {
    "counted", "counted allocations",
    [](std::string_view, std::string_view head) { return head.starts_with("counted "); }, &importCounted};

class RunImport : public testing::Test {
protected:
    std::string write(const std::string& text) const {
        const std::string path = folder_.file("events.txt");
        std::ofstream(path) << text;
        return path;
    }
    std::string session() const { return folder_.file("imported.vitrine"); }

    test::TempFolder folder_;
};

TEST_F(RunImport, AnImporterFromOutsideLosesNothing) {
    const profiler::ImporterRegistration registration(kCounted);
    // More events than a recorder keeps waiting.
    constexpr std::uint64_t kCount = 1'500'000;
    const std::string path = write("counted " + std::to_string(kCount));
    const sessions::RunId id = importRun(path, session(), nullptr, {});
    const auto file = sessions::SessionFile::open(session(), sessions::OpenMode::ReadOnly);
    const auto runs = file->runs();
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs[0].id, id);
    EXPECT_EQ(runs[0].name, "events.txt");
    EXPECT_EQ(runs[0].workload, "import counted");
    EXPECT_EQ(runs[0].status, sessions::RunStatus::Done);
    EXPECT_EQ(runs[0].lostRecords, 0U);
    EXPECT_EQ(loadTimeline(*file, id)->memory().events(), 2 * kCount);
    EXPECT_EQ(runs[0].metricsJson, R"({"allocations": 1500000})");
}

TEST_F(RunImport, AFailureStaysInTheSession) {
    const profiler::ImporterRegistration registration(kCounted);
    EXPECT_THROW(importRun(write("counted 3 broken"), session(), nullptr, {}), base::BadInput);
    const auto file = sessions::SessionFile::open(session(), sessions::OpenMode::ReadOnly);
    ASSERT_EQ(file->runs().size(), 1U);
    EXPECT_EQ(file->runs()[0].status, sessions::RunStatus::Failed);
    EXPECT_NE(file->runs()[0].error.find("ends too early"), std::string::npos);
}

TEST_F(RunImport, ACancelledImportSaysSo) {
    const profiler::ImporterRegistration registration(kCounted);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW(importRun(write("counted 3"), session(), nullptr, stop.get_token()), base::Cancelled);
    const auto file = sessions::SessionFile::open(session(), sessions::OpenMode::ReadOnly);
    EXPECT_EQ(file->runs().at(0).status, sessions::RunStatus::Cancelled);
}

TEST_F(RunImport, UnknownFilesAreRefusedBeforeASessionIsMade) {
    const profiler::ImporterRegistration registration(kCounted);
    try {
        importRun(write("something else"), session(), nullptr, {});
        FAIL() << "the file was taken";
    } catch (const base::BadInput& error) {
        EXPECT_NE(error.message().find("no importer reads this file; known formats: counted allocations"),
                  std::string::npos);
    }
    EXPECT_FALSE(std::ifstream(session()).good());
    EXPECT_THROW(importRun(folder_.file("missing"), session(), nullptr, {}), base::BadInput);
    EXPECT_THROW(profiler::ImporterRegistration{kCounted}, base::Internal);
}

} // namespace
} // namespace vitrine::app
