// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/recording/run_recording.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/base/eventually.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using nlohmann::json;
using sessions::OpenMode;
using sessions::RunStatus;
using sessions::SessionFile;

constexpr std::uint64_t kLimit = std::uint64_t{1} << 20;

/// A server's recording, filled by the test.
class PartsRig {
public:
    PartsRig() : recording_(SessionFile::open(path(), OpenMode::CreateOrOpen), info(), kLimit) {
        recording_.trace().record(base::AllocationEvent{.time = 1,
                                                        .id = 1,
                                                        .address = 4096,
                                                        .bytes = 5000,
                                                        .name = recording_.trace().intern("weights"),
                                                        .category = base::MemoryCategory::Weights});
        recording_.setLiveValue("slots", 4);
    }

    std::string path() const { return folder_.file("serve.vitrine"); }
    RunRecording& recording() { return recording_; }

    /// One request with some text; the next part when this one is full.
    void request() {
        base::TraceSink& trace = recording_.trace();
        trace.record(base::RequestEvent{time_, requests_, base::RequestChange::Arrived, -1, -1, 3, {}});
        recording_.appendTexts(requests_, [&](const PartOrigin& origin) {
            return std::vector<sessions::RunText>{
                {"output." + std::to_string(requests_ - origin.request), std::string(2000, 'x')}};
        });
        recording_.closeTexts(requests_);
        trace.record(base::RequestEvent{time_ + 10, requests_, base::RequestChange::Finished, -1, -1, 5, {}});
        ++requests_;
        time_ += 100;
        if (recording_.partIsFull()) {
            recording_.nextPart({{"ttft", {{"p50", parts_}}}});
            ++parts_;
        }
    }
    void untilParts(int parts) {
        while (parts_ < parts) {
            request();
        }
    }
    /// Until run `id` is in the session.
    bool waitFor(sessions::RunId id) const {
        const auto session = SessionFile::open(path(), OpenMode::ReadOnly);
        return test::eventually([&] {
            const auto runs = session->runs();
            return !runs.empty() && runs.back().id >= id;
        });
    }
    std::vector<sessions::RunInfo> finish() {
        recording_.finish(RunStatus::Done, R"({"requests": 7})", {});
        return SessionFile::open(path(), OpenMode::ReadOnly)->runs();
    }
    std::int32_t requests() const { return requests_; }

private:
    static sessions::RunInfo info() {
        sessions::RunInfo info;
        info.name = "serve";
        info.workload = "serve";
        info.specJson = R"({"slots": 4})";
        return info;
    }

    test::TempFolder folder_{test::TempFolder::Place::Memory}; // a busy disk is not the subject
    RunRecording recording_;
    base::TimeNs time_ = 100;
    std::int32_t requests_ = 0;
    int parts_ = 1;
};

TEST(RunRecording, GoesOnInPartsAndKeepsTheNewest) {
    PartsRig rig;
    EXPECT_FALSE(rig.recording().partIsFull());
    rig.untilParts(9);
    rig.request();
    const auto runs = rig.finish();
    ASSERT_GE(runs.size(), 3U);
    ASSERT_LE(runs.size(), 4U);
    EXPECT_EQ(runs.back().name, "serve, part 9");
    EXPECT_EQ(rig.recording().run(), runs.back().id);
    const json last = json::parse(runs.back().metricsJson);
    EXPECT_EQ(last.at("requests"), 7);
    EXPECT_EQ(last.at("part"), 9);
    EXPECT_EQ(last.at("dropped_parts"), 9 - static_cast<int>(runs.size())) << "what is gone is reported";
    EXPECT_GT(last.at("dropped_bytes").get<std::uint64_t>(), kLimit);
    for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
        EXPECT_EQ(runs[i].status, RunStatus::Done);
        const json metrics = json::parse(runs[i].metricsJson);
        EXPECT_EQ(metrics.at("next_run"), runs[i + 1].id);
        EXPECT_EQ(metrics.at("slots"), 4) << "values of the run are reported in every part";
        EXPECT_EQ(metrics.at("ttft").at("p50"), metrics.at("part")) << "those of a part in that part alone";
    }
    const auto session = SessionFile::open(rig.path(), OpenMode::ReadOnly);
    for (const auto& run : runs) {
        const auto streams = session->streams(run.id);
        EXPECT_NE(std::find(streams.begin(), streams.end(), "allocations"), streams.end())
            << "what is alive is reported";
        EXPECT_TRUE(session->text(run.id, "output.1").has_value() || &run == &runs.back())
            << "requests of a part count from its beginning";
    }
    EXPECT_LT(std::filesystem::file_size(rig.path()), 3 * kLimit / 2);
}

TEST(RunRecording, KeepsPartsThatSomebodyWroteTo) {
    PartsRig rig;
    rig.untilParts(3);
    ASSERT_TRUE(rig.waitFor(3));
    {
        const auto session = SessionFile::open(rig.path(), OpenMode::ReadWrite);
        session->setNote(1, "look at this one");
        session->renameRun(2, "the slow ones");
    }
    rig.untilParts(9);
    const auto runs = rig.finish();
    EXPECT_EQ(runs[0].id, 1);
    EXPECT_EQ(runs[0].note, "look at this one");
    EXPECT_EQ(runs[1].name, "the slow ones");
    EXPECT_GT(runs[2].id, 3) << "the third was nobody's";
}

/// Records more events at once than a recorder holds.
void recordMillions(base::TraceSink& trace) {
    const base::StringId name = trace.intern("tokens");
    for (int i = 0; i < 2'500'000; ++i) {
        trace.record(base::CounterEvent{i, name, 1});
    }
}

TEST(RunRecording, ARunInVirtualTimeWaitsForTheSession) {
    for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
        const test::TempFolder folder{test::TempFolder::Place::Memory};
        RunRecording recording(SessionFile::open(folder.file("one.vitrine"), OpenMode::CreateOrOpen), {}, limit,
                               base::TimeBase::Virtual);
        recordMillions(recording.trace());
        recording.finish(RunStatus::Done, "{}", {});
        EXPECT_EQ(recording.lostRecords(), 0U) << limit;
        const auto session = SessionFile::open(folder.file("one.vitrine"), OpenMode::ReadOnly);
        EXPECT_EQ(session->runs().at(0).lostRecords, 0U);
        const auto streams = session->streams(1);
        EXPECT_EQ(std::find(streams.begin(), streams.end(), "gaps"), streams.end());
    }
}

TEST(RunRecording, PartsOfARunInVirtualTimeBeginWhileProducersWait) {
    const test::TempFolder folder{test::TempFolder::Place::Memory};
    RunRecording recording(SessionFile::open(folder.file("parts.vitrine"), OpenMode::CreateOrOpen), {},
                           std::uint64_t{1} << 30, base::TimeBase::Virtual);
    std::atomic<bool> done{false};
    std::thread other([&] {
        recordMillions(recording.trace());
        done = true;
    });
    while (!done) {
        recording.nextPart(json::object());
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    other.join();
    recording.finish(RunStatus::Done, "{}", {});
    EXPECT_EQ(recording.lostRecords(), 0U);
}

TEST(RunRecording, ARunInRealTimeSaysWhatItLostAndWhere) {
    const test::TempFolder folder{test::TempFolder::Place::Memory};
    RunRecording recording(SessionFile::open(folder.file("one.vitrine"), OpenMode::CreateOrOpen), {});
    recordMillions(recording.trace());
    recording.finish(RunStatus::Done, "{}", {});
    const auto session = SessionFile::open(folder.file("one.vitrine"), OpenMode::ReadOnly);
    EXPECT_EQ(session->runs().at(0).lostRecords, recording.lostRecords());
    const auto streams = session->streams(1);
    EXPECT_EQ(std::find(streams.begin(), streams.end(), "gaps") != streams.end(), recording.lostRecords() > 0);
}

TEST(RunRecording, WithoutALimitThereIsOneRun) {
    const test::TempFolder folder;
    sessions::RunInfo info;
    info.name = "one";
    RunRecording recording(SessionFile::open(folder.file("one.vitrine"), OpenMode::CreateOrOpen), info);
    recording.appendText("output", std::string(std::size_t{2} << 20, 'y'));
    EXPECT_FALSE(recording.partIsFull());
    recording.finish(RunStatus::Done, R"({"a": 1})", {});
    const auto runs = SessionFile::open(folder.file("one.vitrine"), OpenMode::ReadOnly)->runs();
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_EQ(runs[0].metricsJson, R"({"a": 1})");
}

} // namespace
} // namespace vitrine::app
