// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Sweeps by the built program: what stands in the session, what is held back, what a failure leaves alone.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sessions/session_file.h"
#include "tests/app/program.h"
#include "tests/app/runner/host/worker_testing.h"
#include "tests/base/eventually.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using sessions::OpenMode;
using sessions::SessionFile;
using test::ProgramResult;
using test::TempFolder;
using testing::HasSubstr;

class SweepCommand : public testing::Test {
protected:
    std::string spec(const json& more = json::object()) {
        json out = {{"vitrine", 1},
                    {"workload", "finetune"},
                    {"model", "synthetic:tiny-gpt-oss"},
                    {"backend", "cpu"},
                    {"prompt_length", 32},
                    {"steps", 4},
                    {"rank", 2},
                    {"seed", 7}};
        out.update(more);
        const std::string path = folder_.file("tune.json");
        std::ofstream(path) << out.dump();
        return path;
    }
    std::string session() const { return folder_.file("runs.vitrine"); }
    ProgramResult sweep(const std::string& file, std::vector<std::string> more) {
        std::vector<std::string> words{"sweep", file, "--session", session(), "--json"};
        words.insert(words.end(), more.begin(), more.end());
        return test::vitrine(words);
    }
    static json runsOf(const ProgramResult& result) {
        return json::parse(result.out, nullptr, false).value("runs", json::array());
    }

    TempFolder folder_;
};

TEST_F(SweepCommand, RunsEveryCombinationAsOneGroupOfTheSession) {
    const ProgramResult result = sweep(spec(), {"--vary", "lr=0.001,0.01", "--vary", "rank=2,4"});
    ASSERT_EQ(result.exitCode, 0) << result.err;
    const json runs = runsOf(result);
    ASSERT_EQ(runs.size(), 4U);
    double last = 0;
    for (const json& run : runs) {
        EXPECT_EQ(run["status"], "finished");
        EXPECT_GE(run["loss"].get<double>(), last) << "sorted by loss";
        last = run["loss"];
        EXPECT_EQ(run["metrics"]["losses"].size(), 4U);
    }
    EXPECT_EQ(runs[0]["above_best"], 0);
    const auto file = SessionFile::open(session(), OpenMode::ReadOnly);
    ASSERT_EQ(file->runs().size(), 4U);
    for (const sessions::RunInfo& run : file->runs()) {
        EXPECT_EQ(run.sweep, "tune");
    }
    EXPECT_EQ(file->runs().front().name, "lr 0.001, rank 2");
}

TEST_F(SweepCommand, GoesOnAfterAFailure) {
    const ProgramResult result = sweep(spec({{"model", folder_.file("missing")}}),
                                       {"--vary", "model=" + folder_.file("missing") + ",synthetic:tiny-gpt-oss"});
    EXPECT_EQ(result.exitCode, 1) << result.err;
    const json runs = runsOf(result);
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(runs[0]["status"], "finished");
    EXPECT_EQ(runs[1]["status"], "failed");
    EXPECT_THAT(runs[1]["reason"].get<std::string>(), HasSubstr("missing"));
}

TEST_F(SweepCommand, HoldsBackWhatDoesNotFit) {
    const ProgramResult result = sweep(spec(), {"--vary", "vram_budget=256KiB,8GiB"});
    EXPECT_EQ(result.exitCode, 1) << result.err;
    const json runs = runsOf(result);
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(runs[0]["status"], "finished");
    EXPECT_EQ(runs[1]["status"], "does not fit");
    EXPECT_GT(runs[1]["needed_bytes"], 256 << 10);
    EXPECT_FALSE(runs[1].contains("loss")) << "a run that has not run has no value";
}

TEST_F(SweepCommand, GoesOnAfterItWasKilled) {
    const std::string file = spec({{"steps", 60}});
    test::Program killed(std::vector<std::string>{"sweep", file, "--session", session(), "--vary", "rank=2,4,8"});
    ASSERT_TRUE(killed.waitForOutput("#1 rank 2: finished"));
    killed.signal(SIGKILL);
    killed.wait();
    const ProgramResult again = sweep(file, {"--vary", "rank=2,4,8", "--resume"});
    EXPECT_EQ(again.exitCode, 0) << again.err;
    std::size_t finished = 0;
    for (const json& run : runsOf(again)) {
        finished += run["status"] == "finished" ? 1 : 0;
        EXPECT_EQ(run["number"] == 1, run["metrics"].empty()) << "the first run is not made again";
    }
    EXPECT_EQ(finished, 3U);
}

TEST_F(SweepCommand, BringsBackWhatWasKilledBeforeItsFirstCheckpoint) {
    const std::string output = folder_.file("out");
    const std::string file = spec({{"steps", 60}, {"output", output}});
    const std::vector<std::string> vary{"--vary", "rank=2,4"};
    std::vector<std::string> words{"sweep", file, "--session", session()};
    words.insert(words.end(), vary.begin(), vary.end());
    test::Program killed(words);
    ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(output + "/rank-2/metrics.csv"); }));
    const ProgramResult second = sweep(file, {"--vary", "rank=2,4", "--name", "second"});
    EXPECT_EQ(second.exitCode, 2);
    EXPECT_THAT(second.err + second.out, HasSubstr("another program runs #1 of its queue now"));
    const ProgramResult elsewhere =
        test::vitrine({"sweep", file, "--session", folder_.file("other.vitrine"), "--vary", "rank=2,4"});
    EXPECT_EQ(elsewhere.exitCode, 2);
    EXPECT_THAT(elsewhere.err, HasSubstr("output: another run writes into " + output + " now"));
    killed.signal(SIGKILL);
    killed.wait();
    const ProgramResult again = sweep(file, {"--vary", "rank=2,4", "--resume"});
    EXPECT_EQ(again.exitCode, 0) << again.err << again.out;
    for (const json& run : runsOf(again)) {
        EXPECT_EQ(run["status"], "finished") << run;
        EXPECT_EQ(run["metrics"]["losses"].size(), 60U);
    }
}

TEST_F(SweepCommand, BringsBackARunWhoseWorkerWasKilled) {
    const std::string output = folder_.file("out");
    const std::string file = spec({{"steps", 200}, {"output", output}});
    test::Program program(std::vector<std::string>{"sweep", file, "--session", session(), "--vary", "rank=2,4"});
    ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(output + "/rank-2/metrics.csv"); }));
    const pid_t worker = test::workerPid(program.pid());
    ASSERT_GT(worker, 0);
    ::kill(worker, SIGKILL);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.exitCode, 0) << result.err << result.out;
    EXPECT_THAT(result.out, HasSubstr("#1 rank 2: its process was lost, so it has written no checkpoint and begins "
                                      "again"));
    EXPECT_THAT(result.out, HasSubstr("#1 rank 2: finished"));
    EXPECT_THAT(result.out, HasSubstr("#2 rank 4: finished"));
    const auto kept = SessionFile::open(session(), OpenMode::ReadOnly);
    const std::vector<sessions::RunInfo> runs = kept->runs();
    ASSERT_EQ(runs.size(), 3U) << "the lost try stays in the session";
    for (std::size_t i = 1; i < runs.size(); ++i) {
        EXPECT_EQ(runs[i].status, sessions::RunStatus::Done);
        EXPECT_EQ(json::parse(runs[i].metricsJson)["losses"].size(), 200U);
    }
}

TEST_F(SweepCommand, BeginsInASessionThatAKilledSweepLeft) {
    const std::string file = spec({{"steps", 200}});
    test::Program killed(std::vector<std::string>{"sweep", file, "--session", session(), "--vary", "rank=2,4"});
    const pid_t worker = test::workerPid(killed.pid());
    ASSERT_GT(worker, 0);
    killed.signal(SIGKILL);
    killed.wait();
    ::kill(worker, SIGKILL);
    const ProgramResult second = sweep(spec(), {"--vary", "rank=2,4", "--name", "second"});
    EXPECT_EQ(second.exitCode, 0) << second.err << second.out;
    for (const json& run : runsOf(second)) {
        EXPECT_EQ(run["status"], "finished") << run;
    }
}

TEST_F(SweepCommand, DoesNotGoOnWithOtherValues) {
    ASSERT_EQ(sweep(spec(), {"--vary", "rank=2"}).exitCode, 0);
    const ProgramResult other = sweep(spec(), {"--vary", "rank=8", "--resume"});
    EXPECT_EQ(other.exitCode, 2);
    EXPECT_THAT(other.err + other.out, HasSubstr("varies other values"));
    EXPECT_EQ(sweep(spec(), {"--vary", "rank=2", "--resume", "--name", "nothing"}).exitCode, 2);
}

TEST_F(SweepCommand, SkipsWhatHasEndedWhenItGoesOn) {
    ASSERT_EQ(sweep(spec(), {"--vary", "rank=2,4"}).exitCode, 0);
    const ProgramResult again = sweep(spec(), {"--vary", "rank=2,4", "--resume"});
    EXPECT_EQ(again.exitCode, 0) << again.err;
    EXPECT_EQ(SessionFile::open(session(), OpenMode::ReadOnly)->runs().size(), 2U);
}

TEST_F(SweepCommand, NamesWhatIsWrongBeforeAnythingRuns) {
    for (const auto& [words, what] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"--vary", "rank=x"}, "--vary: rank"},
             {{"--vary", "rank=2", "--vary", "rank=4"}, "twice"},
             {{"--vary", "rank=2", "--stop-rule", "0.1"}, "--stop-rule"}}) {
        const ProgramResult result = sweep(spec(), words);
        EXPECT_EQ(result.exitCode, 2);
        EXPECT_THAT(result.err + result.out, HasSubstr(what));
    }
    EXPECT_FALSE(std::filesystem::exists(session()));
}

} // namespace
} // namespace vitrine
