// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Runs of several ranks in a worker process: their sessions have a timeline for each rank, and a rank that fails leaves
// a session that is whole.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "app/runner/host/run_host.h"
#include "app/runner/recording/stored_timeline.h"
#include "engine/workload/experiment/experiment.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "sessions/session_file.h"
#include "tests/app/runner/host/worker_testing.h"
#include "tests/fixture_paths.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

using nlohmann::json;

class RankRuns : public testing::Test {
protected:
    RankRuns() : host_(RunHost::inWorker(test::kWorkerProgram)) {}

    RunOutcome run(const json& more) {
        json what = {{"vitrine", 1},      {"workload", "generate"}, {"model", vitrine::test::fixture("qwen3-moe-8h")},
                     {"backend", "cpu"},  {"tokens", {5, 17, 33}},  {"ignore_eos", true},
                     {"profile", "full"}, {"max_new_tokens", 6}};
        what.update(more);
        host_->start(engine::Experiment::parse(what, "experiment"), session(), [](const json&) {});
        return host_->wait();
    }
    std::string session() const { return folder_.file("runs.vitrine"); }

    test::TempFolder folder_{test::TempFolder::Place::Memory};
    std::unique_ptr<RunHost> host_;
};

TEST_F(RankRuns, ASessionHasATimelineOfEachRank) {
    const RunOutcome alone = run(json::object());
    ASSERT_EQ(alone.status, RunOutcome::Status::Done) << alone.error;
    for (const json& shape : {json{{"tp", 2}}, json{{"tp", 2}, {"ep", 2}}, json{{"ep", 4}}}) {
        const RunOutcome outcome = run(shape);
        ASSERT_EQ(outcome.status, RunOutcome::Status::Done) << outcome.error;
        const json metrics = json::parse(outcome.metricsJson);
        EXPECT_EQ(metrics["ids"], json::parse(alone.metricsJson)["ids"]);
        ASSERT_TRUE(metrics.contains("ranks")) << shape.dump() << " " << metrics.dump();
        const json& rows = metrics["ranks"];
        const auto file = sessions::SessionFile::open(session(), sessions::OpenMode::ReadOnly);
        const auto timelines = loadRankTimelines(*file, outcome.run);
        ASSERT_EQ(timelines.size(), rows.size());
        for (std::size_t rank = 0; rank < timelines.size(); ++rank) {
            const profiler::MemoryFacet& memory = timelines[rank]->memory();
            const auto peaks = memory.peaks(1);
            ASSERT_FALSE(peaks.empty());
            const base::CategoryBytes held = memory.at(peaks.front());
            EXPECT_EQ(std::accumulate(held.begin(), held.end(), std::uint64_t{0}), rows[rank]["peak_bytes"])
                << "rank " << rank;
        }
    }
}

/// With this budget a rank can load and not step, or not even load.
TEST_F(RankRuns, ARankWithoutMemoryLeavesAWholeSession) {
    int failed = 0;
    for (const int kilobytes : {150, 300, 350, 400, 410, 420, 421, 430}) {
        const RunOutcome outcome = run({{"tp", 2}, {"vram_budget", kilobytes * 1000}});
        const auto file = sessions::SessionFile::open(session(), sessions::OpenMode::ReadOnly);
        EXPECT_NO_THROW(loadRankTimelines(*file, outcome.run));
        if (outcome.status == RunOutcome::Status::OutOfMemory) {
            ++failed;
            EXPECT_NE(outcome.error.find("rank "), std::string::npos) << outcome.error;
        }
    }
    EXPECT_GT(failed, 0);
    EXPECT_EQ(run({{"tp", 2}}).status, RunOutcome::Status::Done);
}

} // namespace
} // namespace vitrine::app
